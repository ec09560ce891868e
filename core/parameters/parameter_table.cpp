#include "core/parameters/parameter_table.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/aligned.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/random.hpp"

namespace tpudist {

std::int64_t ParameterEntry::size() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

int ParameterTable::add(ParameterEntry entry) {
  for (const ParameterEntry& other : entries_) {
    if (other.name == entry.name)
      throw Error(ErrorKind::failed, "parameter " + entry.name + " exists already");
  }
  if (entry.size() <= 0) throw Error(ErrorKind::failed, "parameter " + entry.name + " is empty");
  if (entry.torch_name.empty()) entry.torch_name = entry.name;
  entry.offset = length_;
  length_ += pad16(entry.size());
  entries_.push_back(std::move(entry));
  return static_cast<int>(entries_.size()) - 1;
}

int ParameterTable::add(std::string name, std::vector<std::int64_t> shape, ParameterGroup group) {
  ParameterEntry entry;
  entry.name = std::move(name);
  entry.shape = std::move(shape);
  entry.group = group;
  return add(std::move(entry));
}

std::int64_t ParameterTable::parameters() const {
  std::int64_t count = 0;
  for (const ParameterEntry& entry : entries_) {
    if (entry.group != ParameterGroup::statistics) count += entry.size();
  }
  return count;
}

const ParameterEntry& ParameterTable::find(const std::string& name) const {
  for (const ParameterEntry& entry : entries_) {
    if (entry.name == name) return entry;
  }
  throw Error(ErrorKind::failed, "the network has no parameter " + name);
}

std::vector<std::int64_t> placed_offsets(const ParameterTable& table) {
  constexpr std::int64_t kBoundary = 64;  // floats
  std::vector<std::int64_t> offsets{0};
  for (const ParameterEntry& entry : table.entries())
    offsets.push_back(offsets.back() + (entry.size() + kBoundary - 1) / kBoundary * kBoundary);
  return offsets;
}

void initialise_parameters(const ParameterTable& table, std::span<float> flat, std::uint64_t key) {
  using Kind = Initialiser::Kind;
  std::fill(flat.begin(), flat.end(), 0.0f);
  for (const ParameterEntry& entry : table.entries()) {
    CounterRng rng(mix_key({key, hash64(entry.name)}));
    const Initialiser& begin = entry.initialiser;
    const double bound = begin.kind == Kind::xavier
                             ? std::sqrt(6 / static_cast<double>(begin.fan_in + begin.fan_out))
                             : 1 / std::sqrt(static_cast<double>(begin.fan_in));
    for (float& value : flat.subspan(entry.offset, entry.size())) {
      value = static_cast<float>(begin.kind == Kind::constant ? begin.value
                                 : begin.kind == Kind::normal ? rng.normal()
                                                              : rng.uniform(-bound, bound));
    }
  }
}

}  // namespace tpudist
