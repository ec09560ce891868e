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

// An SVG drawing while it is made. All texts are escaped. Colours come from the classes of the page's
// style sheet (page_style.cpp), so that they follow its light or dark scheme. What has a `title` shows it
// under a resting pointer, and readers of the screen say it.
class SvgCanvas {
 public:
  // `label` says what the drawing is.
  SvgCanvas(double width, double height, std::string_view label);

  void line(SvgPoint from, SvgPoint to, std::string_view style);
  // Points that are not finite cut the line.
  void polyline(std::span<const SvgPoint> points, std::string_view style,
                std::string_view title = {});
  void polygon(std::span<const SvgPoint> points, std::string_view style);
  void circle(SvgPoint centre, double radius, std::string_view style, std::string_view title = {});
  // With its left upper corner; `opacity` of its fill.
  void rectangle(SvgPoint corner, double width, double height, std::string_view style,
                 double opacity = 1, std::string_view title = {});
  void text(SvgPoint at, TextAnchor anchor, std::string_view style, std::string_view content,
            std::string_view title = {});
  // Turned by 90 degrees, reading upwards, its middle here.
  void upward_text(SvgPoint at, std::string_view style, std::string_view content);

  std::string finish();

 private:
  void close(std::string_view element, std::string_view title);

  std::string svg_;
};

}  // namespace tpudist
