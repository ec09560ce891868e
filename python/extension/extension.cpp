// The Python module tpudist._extension: the data of tpudist as NumPy arrays. It uses only core,
// data and results/records, and starts neither LibTorch nor MPI. Users see python/tpudist/.
// python/tpudist/_extension.pyi lists the arguments of each function.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/config/yaml_scalar.hpp"
#include "core/config/yaml_tree.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "core/thread_pool.hpp"
#include "core/version.hpp"
#include "data/loading/dataset.hpp"
#include "data/loading/fold_table.hpp"
#include "data/loading/slate_order.hpp"
#include "data/schema/model_family.hpp"
#include "data/shards/manifest.hpp"
#include "python/extension/arrays.hpp"
#include "python/extension/layouts.hpp"
#include "results/records/predictions_file.hpp"

namespace nb = nanobind;

namespace tpudist::python {
namespace {

using Names = std::vector<std::string>;

template <typename Value>
Value one_of(const std::string& name, const char* what,
             std::initializer_list<std::pair<const char*, Value>> values) {
  std::string known;
  for (const auto& [text, value] : values) {
    if (name == text) return value;
    known += known.empty() ? text : std::string(", ") + text;
  }
  throw ConfigError(std::string(what) + ": '" + name + "' is none of " + known);
}

DuplicatesPolicy duplicates_of(const std::string& name) {
  return one_of<DuplicatesPolicy>(name, "duplicates",
                                  {{"keep", DuplicatesPolicy::keep},
                                   {"min", DuplicatesPolicy::min},
                                   {"mean", DuplicatesPolicy::mean},
                                   {"median", DuplicatesPolicy::median},
                                   {"first", DuplicatesPolicy::first}});
}

CacheMode cache_of(const std::string& name) {
  return one_of<CacheMode>(name, "cache",
                           {{"auto", CacheMode::automatic},
                            {"memory", CacheMode::memory},
                            {"stream", CacheMode::stream}});
}

// The keys of `data.reduce`.
struct Reduction {
  std::string keep = "none", direction = "both", edges = "touching_config";
  int hops = 1;

  GraphReduction resolved() const {
    GraphReduction reduction;
    reduction.wanted = one_of<bool>(keep, "reduce", {{"none", false}, {"config_neighbours", true}});
    reduction.hops = hops;
    reduction.direction = one_of<GraphReduction::Direction>(
        direction, "direction",
        {{"both", GraphReduction::Direction::both},
         {"to_producer", GraphReduction::Direction::to_producer},
         {"to_consumer", GraphReduction::Direction::to_consumer}});
    reduction.edges =
        one_of<GraphReduction::Edges>(edges, "edges",
                                      {{"touching_config", GraphReduction::Edges::touching_config},
                                       {"all", GraphReduction::Edges::all}});
    return reduction;
  }
};

// Opens graphs by DatasetOptions in the words of an experiment file.
std::shared_ptr<Dataset> open_data(const std::string& shards, const std::string& collection,
                                   const std::string& split, const Names& include,
                                   const Names& exclude, const std::string& duplicates,
                                   const Reduction& reduce, const std::string& cache,
                                   std::uint64_t cache_bytes, const std::string& cache_dir,
                                   std::uint64_t cache_size,
                                   const std::optional<std::pair<Names, Names>>& valid,
                                   int threads) {
  DatasetOptions options;
  options.shards = shards;
  options.collection = with_schema(shards, Collection::parse(collection));
  options.split = split;
  options.include = include;
  options.exclude = exclude;
  options.duplicates = duplicates_of(duplicates);
  options.reduction = reduce.resolved();
  options.cache = cache_of(cache);
  options.cache_bytes = cache_bytes;
  options.node_cache = NodeCacheOptions::of(cache_dir, cache_size);
  if (valid) options.second = SecondSplit{"valid", valid->first, valid->second};
  const nb::gil_scoped_release unlocked;
  ThreadPool pool(threads);  // ends here, so a later fork has none of its threads
  return std::make_shared<Dataset>(Dataset::open(options, pool));
}

int checked(const Dataset& data, int graph) {
  if (graph < 0 || graph >= data.size())
    throw std::out_of_range("no graph " + std::to_string(graph) + " of " +
                            std::to_string(data.size()));
  return graph;
}

nb::dict entry_dict(const GraphEntry& entry) {
  nb::dict dict;
  dict["name"] = entry.name;
  dict["split"] = entry.split;
  dict["family"] = model_family(entry.name);
  dict["shard"] = entry.shard.string();
  dict["nodes"] = entry.nodes;
  dict["edges"] = entry.edges;
  dict["configs"] = entry.configs;
  dict["distinct_configs"] = entry.distinct_configs;
  dict["config_nodes"] = entry.config_nodes;
  dict["coded"] = entry.coded;
  dict["states"] = entry.states;
  return dict;
}

std::size_t size(std::int64_t number) {
  return static_cast<std::size_t>(number);
}

nb::dict graph_arrays(const Dataset& data, int graph) {
  const Graph& g = data.graph(checked(data, graph));
  const RunTimes& times = data.run_times(graph);
  const ConfigStates& states = data.states(graph);
  nb::dict dict;
  dict["node_features"] = view(g.node_features, {size(g.nodes), g.feature_count()});
  dict["opcodes"] = view(g.opcodes, {g.opcodes.size()});
  dict["edge_index"] = view(g.edge_index, {size(g.edges), 2});
  dict["config_nodes"] = view(g.config_nodes, {g.config_nodes.size()});
  dict["node_splits"] = view(g.node_splits, {g.node_splits.size()});
  dict["runtimes"] = view(times.runtime, {times.runtime.size()});
  dict["normalizers"] = view(times.normalizer, {times.normalizer.size()});
  dict["config_group"] = view(times.group, {times.group.size()});
  const std::size_t features = size(data.options().collection.schema.config_features);
  dict["states"] = view(states.features, {states.features.size() / features, features});
  dict["state_offsets"] = view(states.offsets, {states.offsets.size()});
  return dict;
}

// (configs [K], targets [K], states [K, nc] or [K], the slate's own table of states or None)
nb::tuple slate_tuple(const Dataset& data, Slate&& slate) {
  const std::size_t count = slate.configs.size();
  const std::size_t nodes = data.graph(slate.graph).config_nodes.size();
  const bool tile = data.options().collection.is_tile();
  const std::size_t features = size(data.options().collection.schema.config_features);
  nb::object table = nb::none();
  if (!data.coded(slate.graph)) {
    const std::size_t rows = slate.local_states.size() / features;
    table = nb::cast(owned(std::move(slate.local_states), {rows, features}));
  }
  auto states = tile ? owned(std::move(slate.states), {count})
                     : owned(std::move(slate.states), {count, nodes});
  return nb::make_tuple(owned(std::move(slate.configs), {count}),
                        owned(std::move(slate.targets), {count}), std::move(states),
                        std::move(table));
}

using Rows = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::tuple slate_of(const Dataset& data, int graph, const Rows& rows) {
  checked(data, graph);
  const std::span<const std::int64_t> numbers(rows.data(), rows.size());
  std::optional<Slate> slate;
  {
    const nb::gil_scoped_release unlocked;
    slate = data.slate(graph, numbers);
  }
  return slate_tuple(data, std::move(*slate));
}

Owned<double> targets_of(const Dataset& data, int graph) {
  std::vector<double> targets;
  for (std::int64_t row = 0; row < data.rows(checked(data, graph)); ++row)
    targets.push_back(data.target(graph, row));
  const std::size_t rows = targets.size();
  return owned(std::move(targets), {rows});
}

Owned<std::int64_t> configs_of(const Dataset& data, int graph) {
  std::vector<std::int64_t> configs;
  for (std::int64_t row = 0; row < data.rows(checked(data, graph)); ++row)
    configs.push_back(data.config_of(graph, row));
  const std::size_t rows = configs.size();
  return owned(std::move(configs), {rows});
}

using States = nb::ndarray<const std::int32_t, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Rows of the table for each state: [..., F] for states [...].
Owned<float> decode(const States& states, const Table& table) {
  const std::size_t features = table.shape(1), rows = table.shape(0), count = states.size();
  std::vector<std::size_t> shape;
  for (std::size_t axis = 0; axis < states.ndim(); ++axis) shape.push_back(states.shape(axis));
  shape.push_back(features);
  std::unique_ptr<float[]> values(new float[count * features]);  // not filled with zeros first
  {
    const nb::gil_scoped_release unlocked;
    for (std::size_t i = 0; i < count; ++i) {
      const auto state = static_cast<std::size_t>(states.data()[i]);
      if (state >= rows)
        throw std::out_of_range("state " + std::to_string(states.data()[i]) + " of " +
                                std::to_string(rows));
      std::memcpy(values.get() + i * features, table.data() + state * features,
                  features * sizeof(float));
    }
  }
  const nb::capsule owner(values.get(), [](void* p) noexcept { delete[] static_cast<float*>(p); });
  return Owned<float>(values.release(), shape.size(), shape.data(), owner);
}

// The order of training on a data set, slate by slate.
class Order {
 public:
  Order(std::shared_ptr<const Dataset> data, const OrderOptions& options, bool by_graph)
      : data_(std::move(data)), order_(order_of(options, *data_)), by_graph_(by_graph) {}

  std::int64_t slates_per_epoch() const { return order_.slates_per_epoch(); }
  std::int64_t steps_per_epoch() const { return order_.steps_per_epoch(); }

  // (graph, epoch, number, weight, rows [K]) and the values of slate_tuple. `member` -1: the rows
  // that all members share.
  nb::tuple slate(std::int64_t step, int index, int member) const {
    SlateId id;
    std::vector<std::int64_t> rows;
    std::optional<Slate> slate;
    {
      const nb::gil_scoped_release unlocked;
      id = item(step, index);
      rows = order_.rows(id, member);
      slate = data_->slate(id.graph, rows);
    }
    const std::size_t count = rows.size();
    return nb::make_tuple(id.graph, id.epoch, id.number, id.weight, owned(std::move(rows), {count}),
                          slate_tuple(*data_, std::move(*slate)));
  }

 private:
  // With `batch.unit: graph` the slates of a step are sorted by graph (BatchPlanner::cut_units).
  SlateId item(std::int64_t step, int index) const {
    if (!by_graph_) return order_.item(step, index);
    std::vector<SlateId> slates;
    for (int i = 0; i < order_.options().slates_per_batch; ++i)
      slates.push_back(order_.item(step, i));
    std::ranges::stable_sort(slates, {}, &SlateId::graph);
    return slates.at(size(index));
  }

  std::shared_ptr<const Dataset> data_;
  SlateOrder order_;
  bool by_graph_;
};

std::shared_ptr<Order> make_order(std::shared_ptr<const Dataset> data, std::uint64_t seed,
                                  int slates, int configs, const std::string& draw,
                                  const std::string& mix, double bias, bool by_graph) {
  OrderOptions options;
  options.seed = seed;
  options.slates_per_batch = slates;
  options.configs_per_slate = configs;
  options.draw = one_of<DrawMode>(
      draw, "draw",
      {{"rows", DrawMode::rows}, {"root", DrawMode::root}, {"graphs", DrawMode::graphs}});
  options.mix = one_of<SlateMix>(mix, "mix",
                                 {{"uniform", SlateMix::uniform},
                                  {"close", SlateMix::close},
                                  {"balanced", SlateMix::balanced},
                                  {"fast", SlateMix::fast}});
  options.bias = bias;
  const nb::gil_scoped_release unlocked;
  return std::make_shared<Order>(std::move(data), options, by_graph);
}

nb::dict folds_of(const std::string& shards, const std::string& collection, const Names& include,
                  const Names& exclude, int folds, std::uint64_t seed, const std::string& file,
                  const std::optional<std::pair<Names, Names>>& valid) {
  DatasetOptions graphs{.shards = shards,
                        .collection = Collection::parse(collection),
                        .include = include,
                        .exclude = exclude};
  if (valid) graphs.second = SecondSplit{"valid", valid->first, valid->second};
  nb::dict dict;
  for (const FoldedGraph& graph : split_into_folds(graphs, folds, seed, file).graphs)
    dict[graph.name.c_str()] = graph.fold;
  return dict;
}

// The graphs of a prediction file one by one: name, split, configs [r], runtimes [r], members [M],
// held_out [M] and scores [M, r].
nb::list predictions_of(const std::string& path) {
  const PredictionsFile file(path);
  const PredictionsHeader& header = file.header();
  nb::list list;
  for (std::size_t g = 0; g < header.graphs.size(); ++g) {
    PredictionRows rows = file.read(static_cast<int>(g));
    const std::size_t count = rows.configs.size(), members = rows.scores.size();
    std::vector<double> scores;
    for (const std::vector<double>& own : rows.scores)
      scores.insert(scores.end(), own.begin(), own.end());
    nb::list numbers, held_out;
    for (std::size_t m = 0; m < members; ++m) {
      numbers.append(header.members[m].number);
      held_out.append(static_cast<bool>(header.graphs[g].held_out[m]));
    }
    nb::dict dict;
    dict["name"] = header.graphs[g].name;
    dict["split"] = header.graphs[g].split;
    dict["configs"] = owned(std::move(rows.configs), {count});
    dict["runtimes"] = owned(std::move(rows.runtime), {count});
    dict["members"] = numbers;
    dict["held_out"] = held_out;
    dict["scores"] = owned(std::move(scores), {members, count});
    list.append(dict);
  }
  return list;
}

nb::object python_value(const YamlValue& value) {
  switch (value.kind) {
    case YamlValue::Kind::null:
      return nb::none();
    case YamlValue::Kind::list: {
      nb::list list;
      for (const YamlValue& item : value.items) list.append(python_value(item));
      return list;
    }
    case YamlValue::Kind::map: {
      nb::dict dict;
      for (const YamlValue& item : value.items) dict[item.key.c_str()] = python_value(item);
      return dict;
    }
    case YamlValue::Kind::scalar:
      break;
  }
  if (!value.quoted) {
    if (value.text == "true" || value.text == "false") return nb::bool_(value.text == "true");
    if (const auto integer = parse_integer(value.text); !integer.error)
      return nb::int_(integer.value);
    if (const auto number = parse_number(value.text); !number.error)
      return nb::float_(number.value);
  }
  return nb::str(value.text.c_str(), value.text.size());
}

nb::object yaml(const std::string& text, const std::string& name) {
  YamlMistakes mistakes;
  auto source = std::make_shared<YamlLocation::Source>();
  source->name = name;
  const YamlValue value = parse_yaml(text, source, mistakes);
  if (!mistakes.empty()) throw ConfigError(mistakes.to_string());
  return python_value(value);
}

// The exceptions of python/tpudist/errors.py, by exit code.
void translate_errors() {
  nb::register_exception_translator(
      [](const std::exception_ptr& thrown, void*) {
        try {
          std::rethrow_exception(thrown);
        } catch (const Error& error) {
          const nb::object made = nb::module_::import_("tpudist.errors")
                                      .attr("error_of")(error.exit_code(), error.what());
          PyErr_SetObject(made.type().ptr(), made.ptr());
        }
      },
      nullptr);
}

}  // namespace

NB_MODULE(_extension, module) {
  translate_errors();
  module.attr("version") = nb::str(version().data(), version().size());

  nb::class_<Reduction>(module, "Reduction")
      .def(
          "__init__",
          [](Reduction* self, std::string keep, int hops, std::string direction,
             std::string edges) {
            new (self) Reduction{std::move(keep), std::move(direction), std::move(edges), hops};
            self->resolved();
          },
          nb::arg("keep") = "none", nb::arg("hops") = 1, nb::arg("direction") = "both",
          nb::arg("edges") = "touching_config");

  nb::class_<Dataset>(module, "Dataset")
      .def_prop_ro("selection_hash", &Dataset::selection_hash)
      .def_prop_ro("in_memory", &Dataset::in_memory)
      .def_prop_ro("resident_bytes", &Dataset::resident_bytes)
      .def("__len__", &Dataset::size)
      .def("entry",
           [](const Dataset& data, int i) { return entry_dict(data.entry(checked(data, i))); })
      .def("rows", [](const Dataset& data, int i) { return data.rows(checked(data, i)); })
      .def("arrays", &graph_arrays)
      .def("targets", &targets_of)
      .def("configs", &configs_of)
      .def("slate", &slate_of, nb::arg("graph"), nb::arg("rows"));

  module.def("open", &open_data, nb::kw_only(), nb::arg("shards"), nb::arg("collection"),
             nb::arg("split"), nb::arg("include"), nb::arg("exclude"), nb::arg("duplicates"),
             nb::arg("reduce"), nb::arg("cache"), nb::arg("cache_bytes"), nb::arg("cache_dir"),
             nb::arg("cache_size"), nb::arg("valid").none(), nb::arg("threads"));

  nb::class_<Order>(module, "Order")
      .def_prop_ro("slates_per_epoch", &Order::slates_per_epoch)
      .def_prop_ro("steps_per_epoch", &Order::steps_per_epoch)
      .def("slate", &Order::slate, nb::arg("step"), nb::arg("index"), nb::arg("member"));
  module.def("order", &make_order, nb::arg("data"), nb::kw_only(), nb::arg("seed"),
             nb::arg("slates"), nb::arg("configs"), nb::arg("draw"), nb::arg("mix"),
             nb::arg("bias"), nb::arg("by_graph"));

  module.def("collections", [](const std::string& shards) {
    require_any_shards(shards);
    Names names;
    for (const Collection& collection : converted_collections(shards))
      names.push_back(collection.name);
    return names;
  });
  module.def("graphs", [](const std::string& shards, const std::string& collection,
                          const std::string& split) {
    const Collection wanted = Collection::parse(collection);
    require_shards(shards, wanted, "give another folder");
    nb::list list;
    for (const GraphEntry& entry : list_graphs(shards, wanted, split))
      list.append(entry_dict(entry));
    return list;
  });
  module.def("folds", &folds_of, nb::kw_only(), nb::arg("shards"), nb::arg("collection"),
             nb::arg("include"), nb::arg("exclude"), nb::arg("folds"), nb::arg("seed"),
             nb::arg("file"), nb::arg("valid").none());
  module.def("predictions", &predictions_of, nb::arg("path"));
  module.def("decode", &decode, nb::arg("states"), nb::arg("table"));
  module.def("pattern_of", [](const std::string& name) { return escape_glob(name); });
  module.def("yaml", &yaml, nb::arg("text"), nb::arg("name"));
  add_layouts(module);
}

}  // namespace tpudist::python
