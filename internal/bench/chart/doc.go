// Package chart draws what package bench has measured, as SVG and PNG. It
// computes nothing: each mark stands for a figure of the report.
package chart
