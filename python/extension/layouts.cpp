#include "python/extension/layouts.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/log.hpp"
#include "data/convert/source_npz.hpp"
#include "data/hlo/layout_configs.hpp"
#include "data/schema/collection.hpp"

namespace nb = nanobind;

namespace tpudist::python {
namespace {

Collection layouts() {
  return Collection::parse("layout:xla:random");
}

std::shared_ptr<const MadeConfigs> made_of(const std::string& module, const std::string& assigned,
                                           const std::string& configs) {
  set_up_logging(0, 1);  // warnings go to standard error
  return SourceNpz(module, layouts(), {configs, assigned}).made();
}

// operations: (name, opcode, node number, states, default), a state a list of the layouts of output
// and operands; groups: numbers of operations; configs: for each operation the number of its state.
nb::dict layouts_of(const std::string& module, const std::string& assigned,
                    const std::string& configs) {
  const auto made = made_of(module, assigned, configs);
  nb::list operations;
  for (const ConfigurableNode& node : made->space.nodes) {
    std::vector<std::vector<std::vector<int>>> states;
    for (const LayoutState& state : node.states) {
      states.emplace_back();
      for (std::size_t tensor = 0; tensor < node.tensors.size(); ++tensor)
        states.back().push_back(tensor_layout(state, static_cast<int>(tensor)));
    }
    operations.append(nb::make_tuple(node.name, node.opcode, node.node, states, node.standard));
  }
  nb::dict dict;
  dict["operations"] = operations;
  dict["groups"] = nb::cast(made->space.groups);
  dict["configs"] = nb::cast(made->configs);
  return dict;
}

std::string apply_layouts(const std::string& module, const std::string& assigned,
                          const std::string& configs, const std::string& form,
                          const std::string& title) {
  const auto made = made_of(module, assigned, configs);
  const auto text = form == "jax" ? jax_constraints : layout_config_text;
  return text(made->space, made->configs.front(), title);
}

void write_npz(const std::string& tuning, const std::string& npz) {
  set_up_logging(0, 1);
  SourceNpz(tuning, layouts()).with_npz(0, [&](const std::filesystem::path& made) {
    std::filesystem::copy_file(made, npz, std::filesystem::copy_options::overwrite_existing);
  });
}

}  // namespace

void add_layouts(nb::module_& module) {
  module.def("layouts", &layouts_of, nb::kw_only(), nb::arg("module"), nb::arg("default"),
             nb::arg("configs"));
  module.def("apply_layouts", &apply_layouts, nb::kw_only(), nb::arg("module"), nb::arg("default"),
             nb::arg("configs"), nb::arg("form"), nb::arg("title"));
  module.def("write_npz", &write_npz, nb::arg("tuning"), nb::arg("npz"));
}

}  // namespace tpudist::python
