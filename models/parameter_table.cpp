#include "models/parameter_table.hpp"

#include <functional>
#include <numeric>

#include "core/error.hpp"

namespace tpudist {

std::int64_t ParameterEntry::size() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

int ParameterTable::add(std::string name, std::vector<std::int64_t> shape, bool output_layer) {
  for (const ParameterEntry& entry : entries_) {
    if (entry.name == name) throw Error(ErrorKind::failed, "parameter " + name + " exists already");
  }
  ParameterEntry entry{std::move(name), std::move(shape), length_, output_layer};
  if (entry.size() <= 0) throw Error(ErrorKind::failed, "parameter " + entry.name + " is empty");
  length_ += (entry.size() + 15) / 16 * 16;
  entries_.push_back(std::move(entry));
  return static_cast<int>(entries_.size()) - 1;
}

std::int64_t ParameterTable::parameters() const {
  std::int64_t count = 0;
  for (const ParameterEntry& entry : entries_) count += entry.size();
  return count;
}

const ParameterEntry& ParameterTable::find(const std::string& name) const {
  for (const ParameterEntry& entry : entries_) {
    if (entry.name == name) return entry;
  }
  throw Error(ErrorKind::failed, "the network has no parameter " + name);
}

}  // namespace tpudist
