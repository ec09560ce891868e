#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "core/error.hpp"
#include "launch/command_line.hpp"
#include "launch/commands.hpp"
#include "launch/display.hpp"
#include "launch/exit_code.hpp"
#include "launch/output.hpp"

// The program that users call. Commands on data and on results run here, in a process that never
// loads LibTorch: loading it takes half a second and 480 MB, more than converting any file. All
// others, and `inspect --plan`, are passed to the program beside it.
namespace {

constexpr std::array<std::string_view, 6> kDataCommands{"convert", "inspect", "verify",
                                                        "synth",   "compare", "report"};

int run_beside(char** argv) {
  std::error_code error;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string program = (here.parent_path() / "tpudist-train").string();
  execv(program.c_str(), argv);
  tpudist::print_error_text(fmt::format(
      "tpudist: error: cannot start {}: {}; install tpudist and tpudist-train into one folder\n",
      program, std::strerror(errno)));
  return static_cast<int>(tpudist::ErrorKind::failed);
}

int run_data_command(int argc, char** argv) {
  tpudist::CommandLine line(
      "tpudist",
      "Trains ensembles of graph neural networks that rank compiler configurations by run time.");
  const tpudist::Command app = line.program();
  app.require_command();
  return tpudist::run_command_line(line, [&] {
    tpudist::add_convert_command(app);
    tpudist::add_inspect_command(app, [argv](const tpudist::InspectPlanArguments&) {
      throw tpudist::EndWith(run_beside(argv));
    });
    tpudist::add_verify_command(app);
    tpudist::add_synth_command(app);
    tpudist::add_compare_command(app);
    tpudist::add_report_command(app);
    tpudist::add_verbosity_options(app);
    line.parse({argv + 1, argv + argc});
  });
}

}  // namespace

int main(int argc, char** argv) {
  const bool data = argc > 1 && std::find(kDataCommands.begin(), kDataCommands.end(), argv[1]) !=
                                    kDataCommands.end();
  tpudist::prepare_standard_streams();
  tpudist::set_up_logging(0, 1);
  return tpudist::finish_output(data ? run_data_command(argc, argv) : run_beside(argv));
}
