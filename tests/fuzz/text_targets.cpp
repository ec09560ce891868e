// Configurations, fold files, safetensors and manifests.

#include "core/config/config.hpp"
#include "core/file_system.hpp"
#include "core/safetensors/safetensors_file.hpp"
#include "data/loading/fold_table.hpp"
#include "data/shards/manifest.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace tpudist::test {
namespace {

// Reads each key in every way that a key can be read.
void read_all(ConfigNode node, int depth = 0) {
  for (const std::string& key : node.keys()) {
    const std::string kind = node.kind(key);
    node.yaml(key);
    if (kind == "map" && depth < 70) {
      read_all(node.child(key), depth + 1);
    } else if (kind == "list") {
      node.yaml_items(key);
      node.texts(key, {});
      node.numbers(key, {});
      node.integers(key, {});
      for (const ConfigNode& item : node.items(key)) read_all(item, depth + 1);
    } else {
      node.text(key, "");
      node.integer(key, 0);
      node.number(key, 0);
      node.boolean(key, false);
      node.integer_or_auto(key, 1);
    }
  }
}

bool read_yaml(std::string_view bytes) {
  // No other file is to be read.
  if (bytes.find("include") != std::string_view::npos) return false;
  std::string resolved;
  const bool is_yaml = accepts(
      [&] {
        ConfigDocument document = ConfigDocument::parse(bytes, "input.yaml");
        for (const std::string& key : document.root().keys()) document.root().yaml(key);
        document.finish();
        resolved = document.resolved_yaml();
      },
      ErrorKind::usage, true);
  if (!is_yaml) return false;
  // What is written back is read again.
  if (!accepts([&] { read_resolved_entries(resolved, "resolved"); }, ErrorKind::usage))
    throw std::logic_error("the resolved configuration cannot be read:\n" + resolved);
  accepts(
      [&] {
        ConfigDocument document = ConfigDocument::parse(bytes, "input.yaml");
        read_all(document.root());
        document.finish();
        document.entries();
      },
      ErrorKind::usage, true);
  return true;
}

std::vector<std::string> yaml_seeds() {
  std::vector<std::string> seeds = {
      "a: {b: [1, 2.5e-3, inf]}\nc: ${env:NOT_SET,4}\nd: 'text'\ne: |\n  lines\n  more\n"
      "f: &x [true, false]\ng: *x\nh: auto\n'odd key': -31\n"};
  for (std::string& file : files_below("experiments", ".yaml")) seeds.push_back(std::move(file));
  for (const char* open : {"[", "{a: ", "- ", "? ", "a:\n  "}) {
    std::string nested = "x: ";
    for (int depth = 0; depth < 100'000; ++depth) nested += open;
    seeds.push_back(nested);
  }
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 20; ++i) {
    laughs += fmt::format("a{}: &a{} [", i, i);
    for (int k = 0; k < 9; ++k) laughs += fmt::format("*a{}, ", i - 1);
    laughs += "]\n";
  }
  seeds.push_back(laughs);
  seeds.push_back("a: &a [*a]\n");
  seeds.push_back("a: 99999999999999999999999999\nb: 1e999\nc: .nan\nd: !!int 3\n<<: {e: 1}\n");
  return seeds;
}

bool read_folds(std::string_view bytes) {
  const std::vector<FoldedGraph> graphs = {{"bert_en_L-12_H-768", "bert_l12", 10, 0},
                                           {"mlperf_bert", "bert", 20, 0},
                                           {"resnet50.4x4.fp16", "resnet", 30, 0},
                                           {"resnet50.8x8.fp16", "resnet", 40, 0}};
  return accepts(
      [&] {
        const FoldFile file = FoldFile::parse(bytes, "folds.yaml");
        file.graph_lines();
        file.folds_of(graphs, file.folds());
      },
      ErrorKind::usage, true);
}

std::vector<std::string> fold_seeds() {
  return {"graphs:\n  mlperf_bert: 2\n  'resnet50.[48]x*': 0\nfamilies:\n  bert_l*: 1\n",
          "folds: 2\nfamilies: {'*': 1}\n",
          "graphs: {'[!a-z]*': 0, '[': 1, '[a': 0, '***?***': 0, 'a[]]b': 1}\n",
          "folds: 1048576\ngraphs: {a: 1048575}\nfamilies: {b: 0}\n",
          "folds: 99999999999\ngraphs: {a: -1}\n",
          "graphs: {'" + std::string(5'000, '*') + "b': 0}\n",
          "families: {'" + std::string(100'000, '[') + "': 0}\n",
          "graphs: " + std::string(100'000, '['),
          ""};
}

bool read_safetensors(std::string_view bytes) {
  const auto path = input_file("input.safetensors", bytes);
  return accepts([&] {
    SafetensorsFile file(path);
    for (const StoredTensor& tensor : file.tensors()) {
      const std::size_t count = is_floating(tensor.type)
                                    ? file.floats(tensor.name).size()
                                    : file.bytes(tensor.name).size() / bytes_of(tensor.type);
      if (count != tensor.elements) throw std::logic_error("another number of elements");
    }
  });
}

std::string safetensors(std::string_view header, std::size_t data, std::uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i));
  return bytes.append(header) + std::string(data, '\1');
}

std::vector<std::string> safetensors_seeds() {
  std::vector<std::string> seeds;
  const auto add = [&](const std::string& header) {
    seeds.push_back(safetensors(header, 8, header.size()));
  };
  add(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})");
  for (std::string& file : files_below("tests/core/safetensors/files", ".safetensors"))
    seeds.push_back(std::move(file));
  add(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})");
  add(R"({"a":{"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]}})");
  add(R"({"a":{"dtype":"BOOL","shape":[8],"data_offsets":[0,8]},"__metadata__":{"k":"v"}})");
  add("{\"a\":" + std::string(100'000, '['));
  add(std::string(100'000, '{'));
  seeds.push_back(safetensors("{}", 0, ~std::uint64_t{0}));
  seeds.push_back(safetensors("{}", 0, std::uint64_t{1} << 40));
  return seeds;
}

const Collection kCollection{"layout:xla:random"};

bool read_one_manifest(std::string_view bytes) {
  const auto path = input_file("manifest.json", bytes);
  return accepts([&] {
    const Manifest manifest = read_manifest(path, kCollection);
    manifest_faults(path, manifest);
    for (const Manifest::Shard& shard : manifest.shards)
      accepts([&] { check_shard_present(path.parent_path(), shard); });
  });
}

std::vector<std::string> manifest_seeds() {
  Manifest manifest;
  manifest.collection = kCollection;
  GraphSummary graph;
  graph.group = "graph_00000";
  graph.name = "resnet50.4x4.fp16";
  graph.source = {"layout/xla/random/train/resnet50.4x4.fp16.npz", 100, 7};
  graph.nodes = 5;
  graph.edges = 4;
  graph.configs = 6;
  graph.config_type = "u8";
  manifest.shards.push_back({"train/shard-00000.h5", "train", 1000, 9, {graph, graph}});
  manifest.skipped.push_back({"layout/xla/random/train/bad.npz", "bad.npz: no zip file"});
  const auto path = scratch_file("sound.json");
  write_manifest(manifest, path);
  const std::string sound = read_text_file(path);
  std::vector<std::string> seeds{sound};
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = sound;
    seeds.push_back(changed.replace(changed.find(from), from.size(), to));
  };
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  with("\"skipped\": [", "\"skipped\": [" + deep + ", ");
  with("\"created_by\": ", "\"created_by\": " + deep + ", \"created_by\": ");
  with("\"configs\": 6", "\"configs\": 9223372036854775807");
  with("\"nodes\": 5", "\"nodes\": -1e300");
  with("train/shard-00000.h5", "../../../x\\n\\u0000");
  return seeds;
}

}  // namespace

FuzzTarget manifest_target() {
  return {"manifest", read_one_manifest, manifest_seeds};
}

FuzzTarget yaml_target() {
  return {"yaml", read_yaml, yaml_seeds};
}

FuzzTarget fold_file_target() {
  return {"fold_file", read_folds, fold_seeds};
}

FuzzTarget safetensors_target() {
  return {"safetensors", read_safetensors, safetensors_seeds};
}

}  // namespace tpudist::test
