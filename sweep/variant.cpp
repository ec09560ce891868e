#include "sweep/variant.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/text.hpp"

namespace tpudist {
namespace {

constexpr std::size_t kMostVariants = 100'000;

using Settings = std::vector<std::string>;

std::vector<Settings> grid(const std::vector<SweptKey>& keys) {
  std::vector<Settings> points{{}};
  for (const SweptKey& key : keys) {
    const std::vector<std::string> values = grid_values(key);
    if (points.size() * values.size() > kMostVariants) {
      throw ConfigError(
          "the sweep has more than 100,000 variants; draw some of them (sweep.draws)");
    }
    std::vector<Settings> longer;
    for (const Settings& point : points) {
      for (const std::string& value : values) {
        longer.push_back(point);
        longer.back().push_back(key.key + "=" + value);
      }
    }
    points = std::move(longer);
  }
  return points;
}

std::vector<Settings> draws(const SweepFile& sweep) {
  std::vector<Settings> points;
  for (int number = 0; number < *sweep.draws; ++number) {
    Settings point;
    for (const SweptKey& key : sweep.over) {
      point.push_back(key.key + "=" +
                      drawn_value(key, sweep.draw_seed, static_cast<std::uint64_t>(number)));
    }
    if (std::ranges::find(points, point) == points.end()) points.push_back(std::move(point));
  }
  return points;
}

}  // namespace

std::vector<Variant> variants_of(const SweepFile& sweep) {
  const std::vector<Settings> points = sweep.draws ? draws(sweep) : grid(sweep.over);
  std::vector<Variant> variants;
  for (std::size_t experiment = 0; experiment < sweep.experiments.size(); ++experiment) {
    for (const Settings& point : points) {
      variants.push_back({static_cast<int>(experiment), point});
    }
  }
  return variants;
}

std::string label_of(const Variant& variant, const SweepFile& sweep) {
  std::vector<std::string> pieces = variant.settings;
  if (sweep.experiments.size() > 1 || pieces.empty()) {
    const auto& path = sweep.experiments[static_cast<std::size_t>(variant.experiment)];
    pieces.insert(pieces.begin(), path.stem().string() + (pieces.empty() ? "" : ":"));
  }
  return join(pieces, " ");
}

}  // namespace tpudist
