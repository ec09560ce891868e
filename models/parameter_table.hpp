#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tpudist {

// One parameter tensor of a member inside the flat buffer [M, P].
struct ParameterEntry {
  std::string name;                 // e.g. "blocks.0.sage.neighbours.weight"
  std::vector<std::int64_t> shape;  // per member, without the member axis; weights are [in, out]
  std::int64_t offset = 0;          // first float; a multiple of 16 (64 bytes)
  std::int64_t size() const;        // product of the shape
  bool output_layer = false;        // belongs to the output layer (own weight decay)
};

// The layout of one member's parameters: entries one behind the other, each padded to 64 bytes; P
// is padded too. Padding is zero and stays zero.
class ParameterTable {
 public:
  // Returns the entry's index.
  int add(std::string name, std::vector<std::int64_t> shape, bool output_layer = false);
  const std::vector<ParameterEntry>& entries() const { return entries_; }
  std::int64_t length() const { return length_; }             // P, with padding
  std::int64_t parameters() const;                            // without padding
  const ParameterEntry& find(const std::string& name) const;  // throws Error

 private:
  std::vector<ParameterEntry> entries_;
  std::int64_t length_ = 0;
};

}  // namespace tpudist
