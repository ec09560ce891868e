#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tpudist {

// One parameter tensor of a member inside the flat buffer [M, P].
struct ParameterEntry {
  std::string name;                 // e.g. "blocks.0.sage.neighbours.weight"
  std::vector<std::int64_t> shape;  // of one member; weights are [in, out]
  std::int64_t offset = 0;          // of its first float in a member's [P]: a multiple of 16
  std::int64_t size() const;        // product of the shape
  bool output_layer = false;  // belongs to the output layer, which has a weight decay of its own
};

// How one member's parameters lie in its flat buffer [P] float32: the entries one behind the other,
// each padded to a multiple of 16 floats (64 bytes), and so P is one too. Padding is zero and stays
// zero. Not thread-safe while entries are added.
class ParameterTable {
 public:
  // Appends an entry behind those that are there, and returns its index. Throws Error when there is
  // one of that name already, or the shape holds nothing.
  int add(std::string name, std::vector<std::int64_t> shape, bool output_layer = false);
  const std::vector<ParameterEntry>& entries() const { return entries_; }
  std::int64_t length() const { return length_; }  // P, with the padding
  std::int64_t parameters() const;  // how many numbers are trained, without the padding
  // Throws Error when there is no such entry.
  const ParameterEntry& find(const std::string& name) const;

 private:
  std::vector<ParameterEntry> entries_;
  std::int64_t length_ = 0;
};

}  // namespace tpudist
