#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/text.hpp"
#include "launch/commands.hpp"
#include "launch/man_page.hpp"
#include "launch/output.hpp"
#include "launch/shell_completion.hpp"

namespace tpudist {
namespace {

void print_completion(const CommandText& program, const std::string& shell) {
  print_text(shell == "bash"  ? bash_completion(program)
             : shell == "zsh" ? zsh_completion(program)
                              : fish_completion(program));
}

void print_page(const CommandText& program, const std::string& wanted) {
  if (wanted.empty()) return print_text(man_page(program, program.name));
  std::vector<std::string> names;
  for (const CommandText& command : program.commands) {
    names.push_back(command.name);
    if (command.name == wanted)
      return print_text(man_page(command, program.name + " " + command.name));
  }
  const std::string nearest = nearest_of(wanted, names);
  refuse_value("command", fmt::format("there is no command \"{}\"{}", wanted,
                                      nearest.empty() ? "" : "; did you mean " + nearest + "?"));
}

void write_pages(const CommandText& program, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw IoError(fmt::format("make the folder {}: {}", folder.string(), error.message()));
  const auto write = [&](const CommandText& command, const std::string& path) {
    const std::filesystem::path file = folder / (man_page_name(path) + ".1");
    write_file_atomically(file, man_page(command, path));
    print("{}\n", file.string());
  };
  write(program, program.name);
  for (const CommandText& command : program.commands)
    write(command, program.name + " " + command.name);
}

}  // namespace

void add_manual_commands(Command app) {
  auto shell = std::make_shared<std::string>();
  Command command =
      app.add_command("completion", "Print a script that lets a shell complete tpudist");
  command.footer(
      "An installation has these scripts already, where the shells look for them.\n\n"
      "Example:\n  source <(tpudist completion bash)\n"
      "  tpudist completion zsh > ~/.zfunc/_tpudist\n"
      "  tpudist completion fish > ~/.config/fish/completions/tpudist.fish");
  command.add_option("shell", *shell, "The shell").required().one_of({"bash", "zsh", "fish"});
  command.run([app, shell] { print_completion(app.text(), *shell); });

  struct ManArguments {
    std::string command;
    std::filesystem::path folder;
  };
  auto arguments = std::make_shared<ManArguments>();
  command = app.add_command("man", "Print a manual page, or write all of them");
  command.footer(
      "Example:\n  tpudist man train | man -l -\n  tpudist man --dir ~/.local/share/man/man1");
  const Option page = command.add_option("command", arguments->command,
                                         "Of this command (default: of the program)");
  command.add_option("--dir", arguments->folder, "Write all pages into this folder").excludes(page);
  command.run([app, arguments] {
    if (arguments->folder.empty()) {
      print_page(app.text(), arguments->command);
    } else {
      write_pages(app.text(), arguments->folder);
    }
  });
}

}  // namespace tpudist
