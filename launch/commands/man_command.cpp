#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/file_system.hpp"
#include "core/text.hpp"
#include "core/version.hpp"
#include "launch/commands/commands.hpp"
#include "launch/program/output.hpp"

namespace tpudist {
namespace {

constexpr std::string_view kExample = "Example:\n";

// Text that roff reads literally, without escapes and requests.
std::string plain(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (safe.empty() || safe.back() == '\n')) safe += "\\&";
    if (c == '\\')
      safe += "\\e";
    else if (c == '-')
      safe += "\\-";
    else
      safe += c;
  }
  return safe;
}

// Paragraphs, with the lines between empty ones filled.
std::string paragraphs(std::string_view text) {
  std::string page;
  for (const std::string& line : split(text, '\n'))
    page += line.empty() ? ".PP\n" : plain(trim(line)) + "\n";
  return page;
}

std::string synopsis(const CommandText& command, const std::string& path) {
  std::string line = fmt::format(".B {}\n", plain(path));
  if (!command.commands.empty()) return line + "command [options]\n";
  std::string arguments;
  bool options = false;
  for (const OptionText& option : command.options) {
    options = options || !option.argument;
    if (!option.argument) continue;
    const std::string name = option.names.front() + (option.many ? " ..." : "");
    arguments += option.required ? " " + name : " [" + name + "]";
  }
  return line + plain((options ? "[options]" : "") + arguments) + "\n";
}

std::string options_text(const CommandText& command) {
  std::string text;
  for (const OptionText& option : command.options) {
    const std::string names = join(option.names, ", "), value = option.value_text();
    text += ".TP\n";
    text += option.argument || value.empty()
                ? fmt::format(".B \"{}\"\n", plain(names))
                : fmt::format(".BI \"{} \" \"{}\"\n", plain(names), plain(value));
    text += plain(option.what);
    if (!option.fallback.empty()) text += plain(fmt::format(" (default: {})", option.fallback));
    text += "\n";
  }
  return text;
}

// The examples of a command and of those below it, each once.
void add_examples(const CommandText& command, std::vector<std::string>& lines) {
  const std::size_t at = command.footer.find(kExample);
  if (at != std::string::npos) {
    for (const std::string& line : split(command.footer.substr(at + kExample.size()), '\n'))
      if (std::ranges::find(lines, trim(line)) == lines.end()) lines.emplace_back(trim(line));
  }
  for (const CommandText& below : command.commands) add_examples(below, lines);
}

// What the command does, with one full stop.
std::string sentence(const CommandText& command) {
  return plain(command.what) + (command.what.ends_with('.') ? "\n" : ".\n");
}

// Description, options and commands below, without a head.
std::string body(const CommandText& command, const std::string& path) {
  std::string text;
  const std::string_view footer = command.footer;
  if (const std::string_view said = trim(footer.substr(0, footer.find(kExample))); !said.empty())
    text += ".PP\n" + paragraphs(said);
  if (!command.options.empty()) text += ".SS Options\n" + options_text(command);
  for (const CommandText& below : command.commands) {
    const std::string below_path = path + " " + below.name;
    text += fmt::format(".SH \"{}\"\n{}.PP\n{}{}", plain(below_path), synopsis(below, below_path),
                        sentence(below), body(below, below_path));
  }
  return text;
}

// The name of a page without its section: "tpudist-train".
std::string man_page_name(const std::string& path) {
  std::string name = path;
  std::ranges::replace(name, ' ', '-');
  return name;
}

// The program's own page: a line for each command, which has a page of its own.
std::string list_of_commands(const CommandText& program) {
  std::string text = ".SH COMMANDS\n";
  for (const CommandText& command : program.commands) {
    text +=
        fmt::format(".TP\n.BR {} (1)\n{}\n",
                    plain(man_page_name(program.name + " " + command.name)), plain(command.what));
  }
  return text;
}

// The manual page of a command and all commands below it, in the macros of man(7). `path` is what a
// user types, "tpudist train". The page of the program itself lists its commands.
std::string man_page(const CommandText& command, const std::string& path) {
  const bool is_program = path.find(' ') == std::string::npos;
  std::string name = man_page_name(path), title = name;
  for (char& c : title) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  CommandText own = command;
  if (is_program) own.commands.clear();
  std::string page = fmt::format(
      ".TH {} 1 \"\" \"tpudist {}\" \"tpudist\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}"
      ".SH DESCRIPTION\n{}{}",
      plain(title), version(), plain(name), plain(command.what), synopsis(command, path),
      sentence(command), body(own, path));
  if (is_program) page += list_of_commands(command);
  std::vector<std::string> examples;
  add_examples(own, examples);
  if (!examples.empty())
    page += fmt::format(".SH EXAMPLES\n.nf\n{}\n.fi\n", plain(join(examples, "\n")));
  if (!is_program)
    page +=
        ".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage or configuration, 3 bad input data, 85 "
        "stopped with a checkpoint, 86 hung.\n.SH SEE ALSO\n.BR tpudist (1)\n";
  return page;
}

void print_page(const CommandText& program, const std::string& wanted) {
  if (wanted.empty()) return print_text(man_page(program, program.name));
  std::vector<std::string> names;
  for (const CommandText& command : program.commands) {
    names.push_back(command.name);
    if (command.name == wanted)
      return print_text(man_page(command, program.name + " " + command.name));
  }
  refuse_value("command",
               fmt::format("there is no command \"{}\"{}", wanted, did_you_mean(wanted, names)));
}

void write_pages(const CommandText& program, const std::filesystem::path& folder) {
  make_folder(folder);
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

void add_man_command(Command app) {
  struct ManArguments {
    std::string command;
    std::filesystem::path folder;
  };
  auto arguments = std::make_shared<ManArguments>();
  Command command = app.add_command("man", "Print a manual page, or write all of them");
  command.footer(
      "Example:\n  tpudist man train | man -l -\n  tpudist man --dir ~/.local/share/man/man1");
  const Option page = command.add_option("command", arguments->command,
                                         "Of this command (default: of the program)");
  command.add_option("--dir", arguments->folder, "Write all pages into this folder").excludes(page);
  command.run([app, arguments] {
    if (arguments->folder.empty())
      print_page(app.text(), arguments->command);
    else
      write_pages(app.text(), arguments->folder);
  });
}

}  // namespace tpudist
