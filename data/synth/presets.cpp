#include "data/synth/presets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/random.hpp"
#include "core/text.hpp"

namespace tpudist::synth {
namespace {

enum JobStream : std::uint64_t { kSizes = 1, kConfigs, kKernels, kFamilyDraws };

constexpr std::size_t kFamilies = 8;  // of each split

// Family `number` of a source: the first eight are for train, the next for valid, the last for
// test. Every split has each kind; the families of a small split differ in kind.
struct Family {
  Kind kind;
  std::uint64_t key;
  std::string name;

  Family(std::string_view source, std::uint64_t seed, std::size_t number)
      : kind(kind_of(source, number % kFamilies)),
        key(mix_key({seed, hash64(source), kFamilyDraws, number})) {
    constexpr std::string_view kKinds[] = {"conv", "attention", "recurrent", "mixture",
                                           "embedding"};
    // The first syllable distinguishes the families of a source; the second one is drawn.
    constexpr std::string_view kConsonants = "bdfgklmnprstvz", kVowels = "aeiou";
    const std::size_t first = number + 24 * (source == "xla"), second = key % 70;
    name =
        fmt::format("{}_{}{}{}{}", kKinds[static_cast<std::size_t>(kind)], kConsonants[first % 14],
                    kVowels[first / 14], kConsonants[second % 14], kVowels[second / 14]);
  }

 private:
  static Kind kind_of(std::string_view source, std::size_t place) {
    using enum Kind;
    constexpr Kind kXla[kFamilies] = {convolution, attention,   recurrent, mixture,
                                      embedding,   convolution, attention, convolution};
    constexpr Kind kLanguage[kFamilies] = {attention, recurrent, mixture,   embedding,
                                           attention, mixture,   recurrent, attention};
    return (source == "xla" ? kXla : kLanguage)[place];
  }
};

// Names differ for every `variant`.
std::string member_name(const Family& family, std::int64_t variant) {
  constexpr std::string_view kTypes[] = {"fp16", "fp32", "bf16"};
  const std::int64_t rest = variant / 48;
  return fmt::format("{}.{}x{}.{}{}", family.name, 2 << ((variant + 1) % 4), 2 << (variant / 4 % 4),
                     kTypes[variant / 16 % 3], rest ? fmt::format(".{}", rest) : "");
}

std::int64_t total(const SplitCounts& graphs) {
  return std::accumulate(graphs.begin(), graphs.end(), std::int64_t{0});
}

// The place of one graph: its split, family, and number in the family, when a split's graphs are
// dealt out family by family.
struct Place {
  std::size_t split;
  Family family;
  std::int64_t variant;
  bool first;  // of the source
};

std::vector<Place> places_of(const SplitCounts& graphs, std::string_view source,
                             std::uint64_t seed) {
  std::vector<Place> places;
  for (std::size_t split = 0; split < graphs.size(); ++split) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(graphs[split]); ++i) {
      places.push_back({split, Family(source, seed, split * kFamilies + i % kFamilies),
                        static_cast<std::int64_t>(i / kFamilies), split == 0 && i == 0});
    }
  }
  return places;
}

// `count` sizes low * (high / low)^(q^a) at evenly spaced quantiles q, in random order; a is chosen
// to give the mean.
std::vector<std::int64_t> spread_sizes(const Plan::Range& range, std::int64_t count,
                                       std::uint64_t key) {
  const double ratio = std::log(static_cast<double>(range.high) / static_cast<double>(range.low));
  const auto size = [&](std::int64_t i, double a) {
    const double q = count > 1 ? static_cast<double>(i) / static_cast<double>(count - 1) : 0.5;
    return std::llround(static_cast<double>(range.low) * std::exp(ratio * std::pow(q, a)));
  };
  double low = 0.02, high = 50;  // the mean falls as a grows
  for (int step = 0; step < 60; ++step) {
    const double a = std::sqrt(low * high);
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(size(i, a));
    (sum > static_cast<double>(range.mean * count) ? low : high) = a;
  }
  std::vector<std::int64_t> sizes;
  for (std::int64_t i = 0; i < count; ++i) sizes.push_back(size(i, std::sqrt(low * high)));
  CounterRng(key).shuffle(std::span(sizes));
  return sizes;
}

std::int64_t draw_configs(const Plan& plan, CounterRng& rng) {
  const auto span = static_cast<std::uint64_t>(plan.configs.high - plan.configs.low + 1);
  return plan.configs.low + static_cast<std::int64_t>(rng.below(span));
}

const std::vector<std::pair<std::string, Preset>>& presets() {
  static const std::vector<std::pair<std::string, Preset>> all = [] {
    const Plan tiny{{5, 2, 2}, {48, 54, 60}, {20, 60}, 0.9};
    const Plan demo{{16, 5, 3}, {200, 330, 600}, {300, 1500}, 0.6, 0.04};
    const Plan nlp{{6, 2, 2}, {876, 5659, 21919}, {8000, 12000}, 0.25, 0.04};
    const Plan xla{{6, 2, 2}, {372, 14105, 43615}, {8000, 12000}, 0.22, 0.04};
    const Plan huge{{1, 0, 0}, {43615, 43615, 43615}, {100040, 100040}, 0.5, 0, 73881, 3143};
    const Plan tiny_tile{{6, 2, 2}, {2, 30, 60}, {10, 40}};
    const Plan demo_tile{{60, 12, 6}, {2, 40, 150}, {10, 500}};
    const Plan tile{{200, 40, 20}, {2, 40, 400}, {10, 4000}};
    return std::vector<std::pair<std::string, Preset>>{{"tiny", {tiny, tiny, tiny_tile}},
                                                       {"demo", {demo, demo, demo_tile}},
                                                       {"nlp", {{}, nlp, {}}},
                                                       {"xla", {xla, {}, {}}},
                                                       {"tile", {{}, {}, tile}},
                                                       {"huge", {huge, {}, {}}}};
  }();
  return all;
}

}  // namespace

const std::vector<std::string>& preset_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const auto& [name, preset] : presets()) list.push_back(name);
    return list;
  }();
  return names;
}

Preset preset_named(std::string_view name) {
  for (const auto& [known, preset] : presets()) {
    if (known == name) return preset;
  }
  throw ConfigError(fmt::format("no preset is named '{}'; there are {}{}", name,
                                join(preset_names(), ", "), did_you_mean(name, preset_names())));
}

std::vector<LayoutJob> layout_jobs(const Plan& plan, std::string_view source, std::uint64_t seed) {
  const std::uint64_t key = mix_key({seed, hash64(source)});
  const auto sizes = spread_sizes(plan.nodes, total(plan.graphs), mix_key({key, kSizes}));
  CounterRng rng(key, kConfigs);
  std::vector<LayoutJob> jobs;
  for (const auto& [split, family, variant, first] : places_of(plan.graphs, source, seed)) {
    LayoutJob& job = jobs.emplace_back();
    job.split = split;
    job.configs = draw_configs(plan, rng);
    if (first) job.corrupt_share = plan.corrupt_share;
    ModelSpec& model = job.model;
    model.name = member_name(family, variant);
    model.kind = family.kind;
    model.family = family.key;
    model.type = variant % 2 ? Dtype::f32 : Dtype::bf16;
    model.batch = std::min<std::int64_t>(8 * (1 + (variant * 3 + 1) % 4) + 32 * (variant / 4), 64);
    model.nodes = sizes[jobs.size() - 1];
    model.body_share = model.nodes < 1500 ? std::max(plan.body_share, 0.6) : plan.body_share;
    model.edges = plan.edges;
    model.config_nodes = plan.config_nodes;
  }
  return jobs;
}

std::vector<KernelSpec> tile_jobs(const Plan& plan, std::uint64_t seed) {
  const std::uint64_t key = mix_key({seed, hash64("tile")});
  const auto sizes = spread_sizes(plan.nodes, total(plan.graphs), mix_key({key, kSizes}));
  CounterRng rng(key, kConfigs);
  std::vector<KernelSpec> jobs;
  // A kernel is a piece of a model; a few hundred kernels come from the same one.
  for (const auto& [split, family, variant, first] : places_of(plan.graphs, "xla", seed)) {
    const std::uint64_t number = jobs.size();
    KernelSpec& job = jobs.emplace_back();
    job.split = split;
    job.key = mix_key({key, kKernels, number});
    job.name = fmt::format("{}_-{}", member_name(family, variant / 8 % 3), to_hex(job.key));
    job.nodes = sizes[number];
    job.configs = draw_configs(plan, rng);
  }
  return jobs;
}

}  // namespace tpudist::synth
