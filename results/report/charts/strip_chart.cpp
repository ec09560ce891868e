#include "results/report/charts/strip_chart.hpp"

#include <algorithm>
#include <cmath>

#include "results/report/charts/markup.hpp"
#include "results/report/charts/svg_canvas.hpp"

namespace tpudist {

std::string StripChart::svg(double width) const {
  if (strips.empty()) return {};
  constexpr double kStep = 52, kLeft = 4;
  const double length = width - 2 * kLeft;
  SvgCanvas canvas(width, kStep * static_cast<double>(strips.size()) + 22, label);
  for (std::size_t i = 0; i < strips.size(); ++i) {
    const Strip& strip = strips[i];
    const double top = kStep * static_cast<double>(i);
    canvas.text({kLeft, top + 14}, TextAnchor::start, "rowname",
                shortened(strip.label, static_cast<std::size_t>(length / 6.4)));
    const double cell = length / static_cast<double>(std::max<std::size_t>(1, strip.values.size()));
    for (std::size_t v = 0; v < strip.values.size(); ++v) {
      if (!std::isfinite(strip.values[v])) continue;
      canvas.rectangle({kLeft + cell * static_cast<double>(v), top + 20}, cell + 0.3, 22, "f1",
                       0.06 + 0.9 * std::clamp(strip.values[v], 0.0, 1.0));
    }
    if (strip.marked_to > strip.marked_from) {
      canvas.rectangle({kLeft + length * strip.marked_from, top + 18},
                       std::max(3.0, length * (strip.marked_to - strip.marked_from)), 26, "marked");
    }
  }
  canvas.text({width / 2, kStep * static_cast<double>(strips.size()) + 12}, TextAnchor::middle,
              "name", x_name);
  return canvas.finish();
}

}  // namespace tpudist
