#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "core/error.hpp"
#include "launch/commands/commands.hpp"
#include "launch/program/command_line.hpp"
#include "launch/program/exit_code.hpp"
#include "launch/program/output.hpp"

namespace tpudist {
extern const std::string_view kCompletionTable;  // of cmake/write_completion_table.cmake
}

// The program that users call. Commands on data and on results, and the completion of shells, run
// here, without LibTorch: loading LibTorch takes half a second and 480 MB, more than converting any
// file. Other commands are passed to the program beside this one.
namespace {

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

bool has_command(tpudist::Command app, std::string_view name) {
  return std::ranges::any_of(app.commands(),
                             [&](tpudist::Command command) { return command.text().name == name; });
}

int run(int argc, char** argv) {
  std::error_code gone;  // LibTorch would end the process before main(), without a message
  if (std::filesystem::current_path(gone).empty())
    return tpudist::print_failure(
        {fmt::format("the working folder is gone ({}): cd to one that is there", gone.message()),
         static_cast<int>(tpudist::ErrorKind::usage)});
  tpudist::CommandLine line(
      "tpudist",
      "Trains ensembles of graph neural networks that rank compiler configurations by run time.");
  const tpudist::Command app = line.program();
  tpudist::add_data_commands(app);
  tpudist::add_result_commands(app);
  tpudist::add_launch_command(app);
  if (!tpudist::kCompletionTable.empty())
    tpudist::add_completion_command(
        app, [] { return tpudist::command_text(tpudist::kCompletionTable); });
  if (argc < 2 || !has_command(app, argv[1])) return run_beside(argv);
  return tpudist::run_command_line(line, [&] {
    tpudist::add_verbosity_options(app);
    line.parse({argv + 1, argv + argc});
  });
}

}  // namespace

int main(int argc, char** argv) {
  tpudist::prepare_standard_streams();
  tpudist::set_up_logging(0, 1);
  return tpudist::finish_output(run(argc, argv));
}
