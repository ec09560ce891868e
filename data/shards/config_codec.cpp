#include "data/shards/config_codec.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "core/hash.hpp"
#include "data/schema/feature_schema.hpp"

namespace tpudist {
namespace {

// Vectors of TpuGraphs' width are compared and hashed in words, others byte by byte.
constexpr std::size_t kWidth = kLayoutConfigFeatures;
constexpr std::size_t kVectorBytes = kWidth * sizeof(float);
constexpr std::size_t kWords = kVectorBytes / sizeof(std::uint64_t);
static_assert(kVectorBytes % sizeof(std::uint64_t) == 0);

using Words = std::array<std::uint64_t, kWords>;

Words load(const float* vector) {
  Words words;
  std::memcpy(words.data(), vector, kVectorBytes);
  return words;
}

// Without early exit: nine independent comparisons are faster than a loop that may stop.
bool same_bits(const Words& a, const Words& b) {
  std::uint64_t difference = 0;
  for (std::size_t i = 0; i < kWords; ++i) difference |= a[i] ^ b[i];
  return difference == 0;
}

// Multilinear hash with odd random multipliers: independent multiplications, mixed once at the end.
// The hash only finds the slot; vectors are compared in full.
std::uint64_t hash_of(const Words& words) {
  constexpr Words kFactors = {0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb,
                              0xd6e8feb86659fd93, 0xff51afd7ed558ccd, 0xc4ceb9fe1a85ec53,
                              0xa0761d6478bd642f, 0xe7037ed1a0b428db, 0x8ebc6af09c88c6e3};
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kWords; ++i) sum += (words[i] ^ (words[i] >> 32)) * kFactors[i];
  return sum ^ (sum >> 29) ^ (sum >> 47);
}

bool same_bits(const float* a, const float* b, std::size_t width) {
  if (width == kWidth) return same_bits(load(a), load(b));
  return std::memcmp(a, b, width * sizeof(float)) == 0;
}

std::uint64_t hash_of(const float* vector, std::size_t width) {
  if (width == kWidth) return hash_of(load(vector));
  return hash64(std::as_bytes(std::span(vector, width)));
}

}  // namespace

ConfigEncoder::ConfigEncoder(std::int64_t config_nodes, int config_features)
    : ConfigEncoder(config_nodes, config_features, Limits{}) {}

ConfigEncoder::ConfigEncoder(std::int64_t config_nodes, int config_features, Limits limits)
    : nodes_(static_cast<std::size_t>(config_nodes)),
      width_(static_cast<std::size_t>(config_features)),
      limits_(limits) {
  for (Node& node : nodes_) node.slots.assign(32, -1);
}

void ConfigEncoder::rehash(Node& node) const {
  node.slots.assign(2 * node.slots.size(), -1);
  const std::size_t mask = node.slots.size() - 1;
  for (std::size_t s = 0; s < node.states.size() / width_; ++s) {
    std::size_t slot = hash_of(&node.states[s * width_], width_) & mask;
    while (node.slots[slot] >= 0) slot = (slot + 1) & mask;
    node.slots[slot] = static_cast<std::int32_t>(s);
  }
}

std::uint32_t ConfigEncoder::find_or_add(Node& node, const float* vector) {
  const float* const states = node.states.data();
  if (!node.states.empty() && same_bits(vector, states + node.last * width_, width_))
    return node.last;
  const std::size_t mask = node.slots.size() - 1;
  std::size_t slot = hash_of(vector, width_) & mask;
  for (; node.slots[slot] >= 0; slot = (slot + 1) & mask) {
    const auto state = static_cast<std::uint32_t>(node.slots[slot]);
    if (same_bits(vector, states + state * width_, width_)) return node.last = state;
  }
  node.last = static_cast<std::uint32_t>(node.states.size() / width_);
  node.slots[slot] = static_cast<std::int32_t>(node.last);
  node.states.insert(node.states.end(), vector, vector + width_);
  ++state_count_;
  max_states_per_node_ = std::max<std::int64_t>(max_states_per_node_, node.last + 1);
  if (2 * (node.last + 1) > node.slots.size()) rehash(node);
  return node.last;
}

bool ConfigEncoder::encode(std::span<const float> features, std::span<std::uint16_t> codes) {
  const std::size_t nc = nodes_.size();
  if (nc == 0 || codes.size() % nc != 0 || features.size() != codes.size() * width_) {
    throw std::invalid_argument("ConfigEncoder::encode: features must be [count, nc, C]");
  }
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint16_t>::max();
  const float* vector = features.data();
  for (std::size_t i = 0; i < codes.size(); i += nc) {
    for (std::size_t j = 0; j < nc; ++j, vector += width_) {
      const std::uint32_t state = find_or_add(nodes_[j], vector);
      if (state > kMost) return false;
      codes[i + j] = static_cast<std::uint16_t>(state);
    }
    ++rows_;
    const auto states = static_cast<std::size_t>(state_count_);
    const bool new_ones =
        rows_ >= limits_.trial_rows && 2 * state_count_ > rows_ * static_cast<std::int64_t>(nc);
    if (new_ones || states * width_ * sizeof(float) > limits_.dictionary_bytes) return false;
  }
  return true;
}

std::optional<std::size_t> ConfigEncoder::first_difference(std::span<const std::uint16_t> codes,
                                                           std::span<const float> features) const {
  const std::size_t nc = nodes_.size();
  for (std::size_t i = 0, j = 0; i < codes.size(); ++i, j = j + 1 == nc ? 0 : j + 1) {
    const auto& states = nodes_[j].states;
    const std::size_t at = codes[i] * width_;
    if (at >= states.size() || !same_bits(&states[at], &features[i * width_], width_)) {
      return i;
    }
  }
  return std::nullopt;
}

ConfigStates ConfigEncoder::states() const {
  std::vector<float> features;
  features.reserve(static_cast<std::size_t>(state_count_) * width_);
  std::vector<std::int32_t> offsets{0};
  for (const Node& node : nodes_) {
    features.insert(features.end(), node.states.begin(), node.states.end());
    offsets.push_back(static_cast<std::int32_t>(features.size() / width_));
  }
  return {std::move(features), std::move(offsets)};
}

template <typename Code>
void decode_configs(const ConfigStates& states, std::span<const Code> codes, std::span<float> out) {
  const std::size_t nc = states.offsets.size() - 1;
  const std::size_t width = codes.empty() ? 0 : out.size() / codes.size();
  for (std::size_t i = 0, j = 0; i < codes.size(); ++i, j = j + 1 == nc ? 0 : j + 1) {
    const auto state = static_cast<std::size_t>(states.offsets[j]) + codes[i];
    std::memcpy(&out[i * width], &states.features[state * width], width * sizeof(float));
  }
}

bool coding_pays(std::int64_t rows, std::int64_t config_nodes, int config_features,
                 std::int64_t states, int code_bytes) {
  const auto vectors = static_cast<double>(rows) * static_cast<double>(config_nodes);
  const double narrow = config_features;  // bytes of a vector
  return vectors * code_bytes + static_cast<double>(states) * narrow < vectors * narrow;
}

template void decode_configs(const ConfigStates&, std::span<const std::uint8_t>, std::span<float>);
template void decode_configs(const ConfigStates&, std::span<const std::uint16_t>, std::span<float>);

}  // namespace tpudist
