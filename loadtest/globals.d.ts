// What k6 has as globals and @types/k6 leaves to the DOM library, which k6 is not.
declare const console: Record<'log' | 'debug' | 'info' | 'warn' | 'error', (...values: unknown[]) => void>;
