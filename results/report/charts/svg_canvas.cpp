#include "results/report/charts/svg_canvas.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/text.hpp"

namespace tpudist {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : printable(text, "\t\n", "\xef\xbf\xbd")) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '"') {
      result += "&quot;";
    } else if (c == '\'') {
      result += "&#39;";
    } else {
      result += c;
    }
  }
  return result;
}

std::string pixels(double value) {
  if (!std::isfinite(value)) return "0";
  const double rounded = std::round(value * 10) / 10;
  return fmt::format("{}", rounded == 0 ? 0.0 : rounded);
}

std::string shortened(std::string_view text, std::size_t most) {
  std::size_t characters = 0, cut = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((text[i] & 0xC0) != 0x80 && ++characters == most) cut = i;
  }
  if (characters <= most) return std::string(text);
  return std::string(text.substr(0, cut)) + "\xe2\x80\xa6";
}

namespace {

std::string list_of(std::span<const SvgCanvas::Point> points) {
  std::string list;
  for (const SvgCanvas::Point& point : points) {
    if (!list.empty()) list += ' ';
    list += pixels(point.x) + ',' + pixels(point.y);
  }
  return list;
}

bool is_finite(const SvgCanvas::Point& point) {
  return std::isfinite(point.x) && std::isfinite(point.y);
}

std::string_view name_of(TextAnchor anchor) {
  return anchor == TextAnchor::start ? "start" : anchor == TextAnchor::middle ? "middle" : "end";
}

}  // namespace

SvgCanvas::SvgCanvas(double width, double height, std::string_view label)
    : svg_(fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" "
                       "width=\"{0}\" height=\"{1}\" role=\"img\" aria-label=\"{2}\">\n",
                       pixels(width), pixels(height), escaped(label))) {}

void SvgCanvas::close(std::string_view element, std::string_view title) {
  svg_ += title.empty() ? std::string("/>\n")
                        : fmt::format("><title>{}</title></{}>\n", escaped(title), element);
}

void SvgCanvas::line(SvgCanvas::Point from, SvgCanvas::Point to, std::string_view style) {
  svg_ += fmt::format("<line class=\"{}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n", style,
                      pixels(from.x), pixels(from.y), pixels(to.x), pixels(to.y));
}

void SvgCanvas::polyline(std::span<const SvgCanvas::Point> points, std::string_view style,
                         std::string_view title) {
  std::size_t begin = 0;
  while (begin < points.size()) {
    std::size_t end = begin;
    while (end < points.size() && is_finite(points[end])) ++end;
    if (end - begin > 1) {
      svg_ += fmt::format("<polyline class=\"{}\" points=\"{}\"", style,
                          list_of(points.subspan(begin, end - begin)));
      close("polyline", title);
    } else if (end - begin == 1) {
      circle(points[begin], 2, fmt::format("{} lone", style), title);
    }
    begin = end + 1;
  }
}

void SvgCanvas::polygon(std::span<const SvgCanvas::Point> points, std::string_view style) {
  svg_ += fmt::format("<polygon class=\"{}\" points=\"{}\"/>\n", style, list_of(points));
}

void SvgCanvas::circle(SvgCanvas::Point centre, double radius, std::string_view style,
                       std::string_view title) {
  svg_ += fmt::format("<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"{}\"", style, pixels(centre.x),
                      pixels(centre.y), pixels(radius));
  close("circle", title);
}

void SvgCanvas::rectangle(SvgCanvas::Point corner, double width, double height,
                          std::string_view style, double opacity, std::string_view title) {
  svg_ += fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", style,
                      pixels(corner.x), pixels(corner.y), pixels(width), pixels(height));
  if (opacity < 1) svg_ += fmt::format(" fill-opacity=\"{:.2f}\"", opacity);
  close("rect", title);
}

void SvgCanvas::text(SvgCanvas::Point at, TextAnchor anchor, std::string_view style,
                     std::string_view content, std::string_view title) {
  svg_ += fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\" text-anchor=\"{}\">", style,
                      pixels(at.x), pixels(at.y), name_of(anchor));
  if (!title.empty()) svg_ += fmt::format("<title>{}</title>", escaped(title));
  svg_ += fmt::format("{}</text>\n", escaped(content));
}

void SvgCanvas::upward_text(SvgCanvas::Point at, std::string_view style, std::string_view content) {
  svg_ += fmt::format(
      "<text class=\"{}\" text-anchor=\"middle\" transform=\"translate({} {}) "
      "rotate(-90)\">{}</text>\n",
      style, pixels(at.x), pixels(at.y), escaped(content));
}

std::string SvgCanvas::finish() {
  return std::move(svg_) + "</svg>\n";
}

}  // namespace tpudist
