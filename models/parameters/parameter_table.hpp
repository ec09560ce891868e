#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tpudist {

// What a parameter is for: `optimizer.decay` names these groups. Statistics are measured on the
// training data and not trained.
enum class ParameterGroup { weights, biases, embeddings, norms, output, statistics };
inline constexpr int kParameterGroups = 6;

// How a parameter begins.
struct Initialiser {
  enum class Kind {
    fan_in,    // uniform in +-1 / sqrt(fan_in), as torch.nn.Linear and SAGEConv do
    normal,    // normal with mean 0 and SD 1, as torch.nn.Embedding does
    xavier,    // uniform in +-sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010)
    constant,  // `value`
  };
  Kind kind = Kind::constant;
  double value = 0;
  std::int64_t fan_in = 1, fan_out = 1;
};

// One parameter tensor of a member inside the flat buffer [M, P].
struct ParameterEntry {
  std::string name;                 // e.g. "blocks.0.sage.neighbours.weight"
  std::vector<std::int64_t> shape = {};  // of one member; weights are [in, out]
  ParameterGroup group = ParameterGroup::weights;
  Initialiser initialiser = {};
  // The name that PyTorch and PyTorch Geometric give it, e.g. "blocks.0.sage.lin_l.weight", and
  // whether its shape is [out, in] there.
  std::string torch_name = {};
  bool torch_transposes = false;
  std::int64_t offset = 0;    // of its first float in a member's [P]: a multiple of 16
  std::int64_t size() const;  // product of the shape
};

// How one member's parameters lie in its flat buffer [P] float32: the entries one behind the other,
// each padded to a multiple of 16 floats (64 bytes), and so P is one too. Padding is zero and stays
// zero. Not thread-safe while entries are added.
class ParameterTable {
 public:
  // Appends an entry behind those that are there, and returns its index; the table sets the offset.
  // An empty torch_name becomes the name. Throws Error when there is an entry of that name already,
  // or the shape holds nothing.
  int add(ParameterEntry entry);
  int add(std::string name, std::vector<std::int64_t> shape,
          ParameterGroup group = ParameterGroup::weights);
  const std::vector<ParameterEntry>& entries() const { return entries_; }
  std::int64_t length() const { return length_; }  // P, with the padding
  // How many numbers are trained, without the padding and statistics.
  std::int64_t parameters() const;
  // Throws Error when there is no such entry.
  const ParameterEntry& find(const std::string& name) const;

 private:
  std::vector<ParameterEntry> entries_;
  std::int64_t length_ = 0;
};

// Fills one member's parameters, flat [P], by their initialisers; padding becomes zero. The numbers
// of an entry are a pure function of `key` and its name, whatever other entries there are.
void initialise_parameters(const ParameterTable& table, std::span<float> flat, std::uint64_t key);

}  // namespace tpudist
