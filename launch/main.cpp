
#include "launch/commands/commands.hpp"
#include "launch/program/build_info.hpp"
#include "launch/program/command_line.hpp"
#include "launch/program/exit_code.hpp"
#include "launch/program/job.hpp"
#include "launch/program/output.hpp"
#include "models/kernels/cpu_process.hpp"

namespace {

void add_commands(tpudist::Command app) {
  tpudist::add_data_commands(app);
  tpudist::add_train_command(app);
  tpudist::add_launch_command(app);
  tpudist::add_evaluate_command(app);
  tpudist::add_predict_command(app);
  tpudist::add_ensemble_command(app);
  tpudist::add_sweep_command(app);
  tpudist::add_result_commands(app);
  tpudist::add_rank_command(app);
  tpudist::add_search_command(app);
  tpudist::add_weights_command(app);
  tpudist::add_config_command(app);
  tpudist::add_doctor_command(app);
  tpudist::add_completion_command(app, [app] { return tpudist::text_with_words(app); });
}

int run(int argc, char** argv) {
  tpudist::CommandLine line(
      "tpudist",
      "Trains ensembles of graph neural networks that rank compiler configurations by run time.");
  const tpudist::Command app = line.program();
  line.add_version([] { return tpudist::build_info(); });
  app.require_command();
  app.footer(
      "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 bad input data, 85 stopped "
      "with a\n"
      "checkpoint, 86 hung. `tpudist COMMAND --help` shows an example of each command.");
  return tpudist::run_command_line(
      line,
      [&] {
        add_commands(app);
        tpudist::add_verbosity_options(app);
        line.parse({argv + 1, argv + argc});
      },
      tpudist::report_to_all_ranks);
}

}  // namespace

int main(int argc, char** argv) {
  tpudist::prepare_standard_streams();
  tpudist::print_uncaught_errors();
  tpudist::keep_tensor_memory();
  const int rank = tpudist::launched_rank();
  tpudist::set_up_logging(rank, rank + 1);  // until MPI says how many there are
  return tpudist::finish_output(run(argc, argv));
}
