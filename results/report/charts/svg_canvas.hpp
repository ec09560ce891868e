#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tpudist {

// Escapes text for the content of an XML or HTML element, or for an attribute in double quotes:
// `&`, `<`, `>`, `"` and `'` become references. Characters that XML forbids, and characters that
// are invisible (as for printable()), become U+FFFD.
std::string escaped(std::string_view text);

// A coordinate in pixels with at most one decimal, "12", "12.5"; 0 if not finite.
std::string pixels(double value);

// A text cut to at most `most` characters (of UTF-8), with an ellipsis at the end if it was cut.
std::string shortened(std::string_view text, std::size_t most);

enum class TextAnchor { start, middle, end };

// Builds an SVG drawing. All texts are escaped. Classes of the page's style sheet
// (results/report/page.cpp) set the colours, for a light and a dark scheme. A `title` is shown on
// hover and read by screen readers.
class SvgCanvas {
 public:
  // A point of a drawing in pixels, y downwards.
  struct Point {
    double x = 0, y = 0;
  };

  // `label` describes the drawing.
  SvgCanvas(double width, double height, std::string_view label);

  void line(Point from, Point to, std::string_view style);
  // Points that are not finite interrupt the line.
  void polyline(std::span<const Point> points, std::string_view style, std::string_view title = {});
  void polygon(std::span<const Point> points, std::string_view style);
  void circle(Point centre, double radius, std::string_view style, std::string_view title = {});
  // `corner`: top left; `opacity`: of the fill.
  void rectangle(Point corner, double width, double height, std::string_view style,
                 double opacity = 1, std::string_view title = {});
  void text(Point at, TextAnchor anchor, std::string_view style, std::string_view content,
            std::string_view title = {});
  // Turned by 90 degrees, reading upwards, centred at `at`.
  void upward_text(Point at, std::string_view style, std::string_view content);

  std::string finish();

 private:
  void close(std::string_view element, std::string_view title);

  std::string svg_;
};

}  // namespace tpudist
