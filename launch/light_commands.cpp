#include "launch/commands.hpp"

namespace tpudist {

void add_data_commands(Command app, std::function<void(const InspectPlanArguments&)> plans) {
  add_convert_command(app);
  add_inspect_command(app, std::move(plans));
  add_verify_command(app);
  add_synth_command(app);
}

void add_result_commands(Command app) {
  add_compare_command(app);
  add_diff_command(app);
  add_report_command(app);
}

}  // namespace tpudist
