#include <array>
#include <filesystem>
#include <memory>

#include "launch/commands/commands.hpp"
#include "launch/program/output.hpp"
#include "results/scores/run_difference.hpp"

namespace tpudist {

void add_diff_command(Command app) {
  auto runs = std::make_shared<std::array<std::filesystem::path, 2>>();
  const Command command =
      app.add_command("diff", "Name the first step and field in which two runs differ");
  command.footer(
      "It compares settings that decide the numbers, data, folds, logged values and checkpoints, "
      "to the bit. Exit codes:\n0 equal, 1 different, 3 damaged files where nothing else differs, "
      "or nothing to compare.\n\n"
      "Example:\n  tpudist diff runs/before runs/after");
  command.add_option("a", (*runs)[0], "Folder of a run").required().existing_folder();
  command.add_option("b", (*runs)[1], "Folder of the other run").required().existing_folder();
  command.run([runs] {
    const auto [equal, text] = compare_runs((*runs)[0], (*runs)[1]);
    print_text(text);
    if (!equal) throw EndWith(1);
  });
}

}  // namespace tpudist
