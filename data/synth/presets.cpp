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

enum JobStream : std::uint64_t { kSizes = 1, kConfigs, kKernels };

// A model family: what its members share, and how they are named.
struct Family {
  enum Naming { mesh, batch, language } naming;
  std::string_view name;
  Style style;
  std::int64_t width, image, sequence;
  bool corrupt = false;  // its first member is
};

using Families = std::span<const Family>;

// Families of the splits of a source. No family is in two splits. Every family of valid and test
// has the style, but not the sizes, of one of train.
struct SplitFamilies {
  Families train, valid, test;

  Families of(std::size_t split) const { return split == 0 ? train : split == 1 ? valid : test; }
};

constexpr Family kXlaTrain[] = {
    {Family::mesh, "resnet50", Style::residual_conv, 64, 56, 0},
    {Family::mesh, "bert_pretraining", Style::transformer, 512, 0, 128},
    {Family::batch, "inception_v3_batch_{}_train", Style::branched_conv, 96, 35, 0},
    {Family::mesh, "unet_3d", Style::volume_conv, 32, 32, 0, true},
    {Family::batch, "alexnet_train_batch_{}", Style::plain_conv, 64, 28, 0},
    {Family::mesh, "transformer", Style::transformer, 1024, 0, 64},
    {Family::mesh, "ssd", Style::residual_conv, 96, 38, 0},
    {Family::batch, "openai_v0_rnn_sequence_batch_{}", Style::recurrent, 768, 0, 64},
};
constexpr Family kXlaValid[] = {
    {Family::mesh, "mask_rcnn", Style::residual_conv, 80, 48, 0},
    {Family::batch, "trax_lsh_batch_{}_train", Style::transformer, 768, 0, 96},
    {Family::mesh, "xception", Style::branched_conv, 64, 42, 0},
    {Family::batch, "mnasnet_batch_{}_train", Style::plain_conv, 48, 40, 0},
    {Family::batch, "magenta_batch_{}", Style::recurrent, 640, 0, 96},
};
constexpr Family kXlaTest[] = {
    {Family::mesh, "retinanet", Style::residual_conv, 112, 30, 0},
    {Family::batch, "efficientnet_batch_{}_train", Style::plain_conv, 40, 48, 0},
    {Family::mesh, "mlperf_nmt", Style::transformer, 896, 0, 80},
};

constexpr Family kLanguageTrain[] = {
    {Family::language, "bert_en_cased_L-12_H-768_A-12", Style::transformer, 768, 0, 128},
    {Family::language, "albert_en_base", Style::transformer, 1024, 0, 128},
    {Family::language, "electra_small", Style::transformer, 256, 0, 128, true},
    {Family::language, "talking-heads_base", Style::transformer, 512, 0, 256},
    {Family::language, "small_bert_bert_en_uncased_L-2_H-128_A-2", Style::transformer, 128, 0, 512},
    {Family::language, "lstm_text", Style::recurrent, 512, 0, 64},
    {Family::language, "small_bert_bert_en_uncased_L-4_H-320_A-5", Style::transformer, 320, 0, 96},
    {Family::language, "gru_text", Style::recurrent, 256, 0, 256},
};
constexpr Family kLanguageValid[] = {
    {Family::language, "small_bert_bert_en_uncased_L-6_H-640_A-10", Style::transformer, 640, 0, 96},
    {Family::language, "small_bert_bert_en_uncased_L-8_H-192_A-3", Style::transformer, 192, 0, 384},
    {Family::language, "rnn_text", Style::recurrent, 384, 0, 128},
};
constexpr Family kLanguageTest[] = {
    {Family::language, "small_bert_bert_en_uncased_L-3_H-448_A-7", Style::transformer, 448, 0, 192},
    {Family::language, "small_bert_bert_en_uncased_L-10_H-896_A-14", Style::transformer, 896, 0,
     64},
};

SplitFamilies families_of(std::string_view source) {
  if (source == "xla") return {kXlaTrain, kXlaValid, kXlaTest};
  return {kLanguageTrain, kLanguageValid, kLanguageTest};
}

// Names differ for every `variant`.
std::string member_name(const Family& family, std::int64_t variant, std::int64_t batch) {
  switch (family.naming) {
    case Family::batch:
      return fmt::format(fmt::runtime(family.name), batch);
    case Family::language:
      return fmt::format("{}_batch_size_{}_{}", family.name, batch, variant % 2 ? "test" : "train");
    case Family::mesh:
      break;
  }
  constexpr std::string_view kTypes[] = {"fp16", "fp32", "bf16"};
  const std::int64_t rest = variant / 48;
  return fmt::format("{}.{}x{}.{}{}", family.name, 2 << ((variant + 1) % 4), 2 << (variant / 4 % 4),
                     kTypes[variant / 16 % 3], rest ? fmt::format(".{}", rest) : "");
}

std::int64_t total(const SplitCounts& graphs) {
  return std::accumulate(graphs.begin(), graphs.end(), std::int64_t{0});
}

// The place of one graph: its split, and its family and number within it when a split's graphs are
// dealt out family by family.
struct Place {
  std::size_t split;
  const Family& family;
  std::int64_t variant;
};

std::vector<Place> places_of(const SplitCounts& graphs, const SplitFamilies& families) {
  std::vector<Place> places;
  for (std::size_t split = 0; split < graphs.size(); ++split) {
    const Families own = families.of(split);
    for (std::int64_t i = 0; i < graphs[split]; ++i) {
      places.push_back(
          {split, own[static_cast<std::size_t>(i % std::ssize(own))], i / std::ssize(own)});
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
  const std::string near = nearest_of(name, preset_names());
  throw ConfigError(fmt::format("no preset is named '{}'{}; there are {}", name,
                                near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near),
                                join(preset_names(), ", ")));
}

std::vector<LayoutJob> layout_jobs(const Plan& plan, std::string_view source, std::uint64_t seed) {
  const std::uint64_t key = mix_key({seed, hash64(source)});
  const auto sizes = spread_sizes(plan.nodes, total(plan.graphs), mix_key({key, kSizes}));
  CounterRng rng(key, kConfigs);
  std::vector<LayoutJob> jobs;
  for (const auto& [split, family, variant] : places_of(plan.graphs, families_of(source))) {
    const std::int64_t batch = 8 * (1 + (variant * 3 + 1) % 4) + 32 * (variant / 4);
    LayoutJob& job = jobs.emplace_back();
    job.split = split;
    job.configs = draw_configs(plan, rng);
    if (family.corrupt && variant == 0) job.corrupt_share = plan.corrupt_share;
    ModelSpec& model = job.model;
    model.name = member_name(family, variant, batch);
    model.style = family.style;
    model.type = variant % 2 ? Dtype::f32 : Dtype::bf16;
    model.batch = std::min<std::int64_t>(batch, 64);
    model.width = family.width;
    model.image = family.image;
    model.sequence = family.sequence;
    model.nodes = sizes[jobs.size() - 1];
    model.body_share = model.nodes < 1500 ? std::max(plan.body_share, 0.6) : plan.body_share;
    model.edges = plan.edges;
    model.config_nodes = plan.config_nodes;
  }
  return jobs;
}

std::vector<TileJob> tile_jobs(const Plan& plan, std::uint64_t seed) {
  const std::uint64_t key = mix_key({seed, hash64("tile")});
  const auto sizes = spread_sizes(plan.nodes, total(plan.graphs), mix_key({key, kSizes}));
  CounterRng rng(key, kConfigs);
  std::vector<TileJob> jobs;
  // A kernel is a piece of a model; a few hundred kernels come from the same one.
  for (const auto& [split, family, variant] : places_of(plan.graphs, families_of("xla"))) {
    const std::uint64_t number = jobs.size();
    TileJob& job = jobs.emplace_back();
    job.split = split;
    job.kernel.key = mix_key({key, kKernels, number});
    job.kernel.name =
        fmt::format("{}_-{}", member_name(family, variant / 8 % 3, 32), to_hex(job.kernel.key));
    job.kernel.nodes = sizes[number];
    job.kernel.configs = draw_configs(plan, rng);
  }
  return jobs;
}

}  // namespace tpudist::synth
