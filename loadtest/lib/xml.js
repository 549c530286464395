// @ts-check
// XML by hand: k6 has no library for it, and nothing is imported from the network.

/** Text as it may stand in an element or an attribute. @param {string} text */
export function escape(text) {
  return String(text)
    .replace(/[^\t\n\r\x20-\uD7FF\uE000-\uFFFD]/g, '?') // what XML 1.0 has no way to write
    .replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;');
}

/**
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 * @param {string} [content] XML already
 */
export function element(name, attributes, content) {
  const list = Object.entries(attributes).map(([key, value]) => ` ${key}="${escape(String(value))}"`).join('');
  return content === undefined ? `<${name}${list}/>` : `<${name}${list}>${content}</${name}>`;
}
