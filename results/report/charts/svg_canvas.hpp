#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tpudist {

// A point of a drawing in pixels, y downwards.
struct SvgPoint {
  double x = 0, y = 0;
};

enum class TextAnchor { start, middle, end };

// Builds an SVG drawing. All texts are escaped. Classes of the page's style sheet
// (results/report/page.cpp) set the colours, for a light and a dark scheme. A `title` is shown on
// hover and read by screen readers.
class SvgCanvas {
 public:
  // `label` describes the drawing.
  SvgCanvas(double width, double height, std::string_view label);

  void line(SvgPoint from, SvgPoint to, std::string_view style);
  // Points that are not finite interrupt the line.
  void polyline(std::span<const SvgPoint> points, std::string_view style,
                std::string_view title = {});
  // Many small dots as one element. Points that are not finite are left out.
  void dots(std::span<const SvgPoint> points, std::string_view style);
  void polygon(std::span<const SvgPoint> points, std::string_view style);
  void circle(SvgPoint centre, double radius, std::string_view style, std::string_view title = {});
  // `corner`: top left; `opacity`: of the fill.
  void rectangle(SvgPoint corner, double width, double height, std::string_view style,
                 double opacity = 1, std::string_view title = {});
  void text(SvgPoint at, TextAnchor anchor, std::string_view style, std::string_view content,
            std::string_view title = {});
  // Turned by 90 degrees, reading upwards, centred at `at`.
  void upward_text(SvgPoint at, std::string_view style, std::string_view content);

  std::string finish();

 private:
  void close(std::string_view element, std::string_view title);

  std::string svg_;
};

}  // namespace tpudist
