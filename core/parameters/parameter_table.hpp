#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tpudist {

// The groups of parameters in `optimizer.decay`. Statistics are measured on the training data, not
// trained.
enum class ParameterGroup { weights, biases, embeddings, norms, output, statistics };
inline constexpr int kParameterGroups = 6;

// Initial values of a parameter.
struct Initialiser {
  enum class Kind {
    fan_in,    // uniform in +-1 / sqrt(fan_in), as in torch.nn.Linear and SAGEConv
    normal,    // normal with mean 0 and SD 1, as in torch.nn.Embedding
    xavier,    // uniform in +-sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010)
    constant,  // `value`
  };
  Kind kind = Kind::constant;
  double value = 0;
  std::int64_t fan_in = 1, fan_out = 1;
};

// One parameter tensor of a member inside the flat buffer [M, P].
struct ParameterEntry {
  std::string name;                      // e.g. "blocks.0.sage.neighbours.weight"
  std::vector<std::int64_t> shape = {};  // of one member; weights are [in, out]
  ParameterGroup group = ParameterGroup::weights;
  Initialiser initialiser = {};
  // The name in PyTorch and PyTorch Geometric, e.g. "blocks.0.sage.lin_l.weight", and whether the
  // shape there is [out, in].
  std::string torch_name = {};
  bool torch_transposes = false;
  std::int64_t offset = 0;    // of its first float in a member's [P]: a multiple of 16
  std::int64_t size() const;  // product of the shape
};

// The layout of one member's parameters in its flat buffer [P] float32: the entries one after
// another, each padded to a multiple of 16 floats (64 bytes), so P is a multiple of 16 too. Padding
// always is zero. Not thread-safe while entries are added.
class ParameterTable {
 public:
  // Appends an entry and returns its index; the table sets the offset. An empty torch_name becomes
  // `name`. Throws Error when an entry of that name exists, or the shape has no elements.
  int add(ParameterEntry entry);
  int add(std::string name, std::vector<std::int64_t> shape,
          ParameterGroup group = ParameterGroup::weights);
  const std::vector<ParameterEntry>& entries() const { return entries_; }
  std::int64_t length() const { return length_; }  // P, with the padding
  // Number of trained values, without padding and statistics.
  std::int64_t parameters() const;
  // Throws Error when there is no such entry.
  const ParameterEntry& find(const std::string& name) const;

 private:
  std::vector<ParameterEntry> entries_;
  std::int64_t length_ = 0;
};

// The offsets of the entries, in floats, in a member's row of a device's copy, then the length of
// the row: [entries + 1]. Each entry begins at a multiple of 256 bytes.
std::vector<std::int64_t> placed_offsets(const ParameterTable& table);

// Sets one member's parameters, flat [P], by their initialisers; padding becomes zero. The values
// of an entry are a pure function of `key` and its name, independent of other entries.
void initialise_parameters(const ParameterTable& table, std::span<float> flat, std::uint64_t key);

}  // namespace tpudist
