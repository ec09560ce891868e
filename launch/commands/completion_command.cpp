#include <fmt/format.h>

#include <functional>
#include <memory>

#include "core/process.hpp"
#include "core/text.hpp"
#include "launch/commands/commands.hpp"
#include "launch/program/output.hpp"

namespace tpudist {
namespace {

using Visit = std::function<void(const CommandText& command, const std::string& path)>;

// Visits the program, whose path is "", and all commands, whose paths are like " sweep run".
void visit_all(const CommandText& command, const Visit& visit, const std::string& path = "") {
  visit(command, path);
  for (const CommandText& below : command.commands)
    visit_all(below, visit, path + " " + below.name);
}

// The paths of all commands, each quoted, with `separator` between.
std::string all_paths(const CommandText& program, std::string_view separator) {
  std::vector<std::string> paths;
  visit_all(program, [&](const CommandText&, const std::string& path) {
    if (!path.empty()) paths.push_back(shell_quoted(path));
  });
  return join(paths, separator);
}

// One line, without what CLI11 adds to it.
std::string line_of(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

// Words that may stand where no option's value is asked for.
std::string words_of(const CommandText& command, bool options) {
  std::vector<std::string> words;
  for (const OptionText& option : command.options) {
    if (option.argument != options)
      words.insert(words.end(), (options ? option.names : option.words).begin(),
                   (options ? option.names : option.words).end());
  }
  if (!options)
    for (const CommandText& below : command.commands) words.push_back(below.name);
  return join(words, " ");
}

// Scripts for completing commands, options and fixed values in a shell; file names where nothing
// else is expected.
std::string bash_completion(const CommandText& program) {
  std::string values, options, words;
  visit_all(program, [&](const CommandText& command, const std::string& path) {
    for (const OptionText& option : command.options) {
      if (option.argument || option.value.empty()) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : option.names)
        patterns.push_back(shell_quoted(path + ":" + name));
      values += fmt::format("    {}) words={} ;;\n", join(patterns, "|"),
                            shell_quoted(join(option.words, " ")));
    }
    options += fmt::format("    {}) words={} ;;\n", shell_quoted(path),
                           shell_quoted(words_of(command, true)));
    if (const std::string own = words_of(command, false); !own.empty())
      words += fmt::format("    {}) words={} ;;\n", shell_quoted(path), shell_quoted(own));
  });
  constexpr std::string_view kScript =
      R"(# Completion of PROGRAM for bash, made by `PROGRAM completion bash`.
_PROGRAM() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at= word words=
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$at $word" in
      PATHS) at="$at $word" ;;
    esac
  done
  case "$at:$prev" in
VALUES    *)
      if [[ $cur == -* ]]; then
        case "$at" in
OPTIONS        esac
      else
        case "$at" in
OWN_NAMES        esac
      fi ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o bashdefault -o default -F _PROGRAM PROGRAM
)";
  std::string script = replaced(std::string(kScript), "PROGRAM", program.name);
  script = replaced(script, "PATHS", all_paths(program, "|"));
  script = replaced(script, "VALUES", values);
  script = replaced(script, "OPTIONS", replaced(options, "    '", "          '"));
  return replaced(script, "OWN_NAMES", replaced(words, "    '", "          '"));
}

std::string zsh_completion(const CommandText& program) {
  std::string cases;
  visit_all(program, [&](const CommandText& command, const std::string& path) {
    cases += fmt::format("    {})\n", shell_quoted(path));
    if (!command.commands.empty()) {
      cases += "      commands=(";
      for (const CommandText& below : command.commands)
        cases += "\n        " + shell_quoted(below.name + ":" + line_of(below.what));
      cases += ")\n      _describe command commands\n";
    }
    // What may stand for an argument, the words of the command itself among them.
    std::string arguments, others = command.commands.empty() ? "*:file:_files" : "*: : ";
    for (const OptionText& option : command.options) {
      const std::string value =
          option.value.empty()   ? ""
          : option.words.empty() ? fmt::format(":{}:_files", option.value)
                                 : fmt::format(":{}:({})", option.value, join(option.words, " "));
      if (option.argument) {
        if (!option.words.empty()) others = "*" + value;
        continue;
      }
      std::string what = replaced(line_of(option.what), "[", "\\[");
      what = replaced(replaced(what, "]", "\\]"), ":", "\\:");
      for (const std::string& name : option.names)
        arguments += " \\\n        " + shell_quoted(fmt::format("{}[{}]{}", name, what, value));
    }
    cases += fmt::format("      _arguments{} \\\n        {} ;;\n", arguments, shell_quoted(others));
  });
  constexpr std::string_view kScript = R"(#compdef PROGRAM
# Completion of PROGRAM for zsh, made by `PROGRAM completion zsh`.
_PROGRAM() {
  local at= word
  local -a commands
  for word in "${(@)words[2,CURRENT-1]}"; do
    case "$at $word" in
      PATHS) at="$at $word" ;;
    esac
  done
  case "$at" in
CASES  esac
}
if [[ $funcstack[1] == _PROGRAM ]]; then _PROGRAM "$@"; else compdef _PROGRAM PROGRAM; fi
)";
  std::string script = replaced(std::string(kScript), "PROGRAM", program.name);
  return replaced(replaced(script, "PATHS", all_paths(program, "|")), "CASES", cases);
}

std::string fish_completion(const CommandText& program) {
  std::string lines;
  visit_all(program, [&](const CommandText& command, const std::string& path) {
    const std::string begin =
        fmt::format("complete -c {} -n {}", program.name,
                    shell_quoted(fmt::format("__{}_at \"{}\"", program.name, path)));
    for (const CommandText& below : command.commands)
      lines +=
          fmt::format("{} -f -a {} -d {}\n", begin, below.name, shell_quoted(line_of(below.what)));
    for (const OptionText& option : command.options) {
      std::string line = begin;
      for (const std::string& name : option.names) {
        if (option.argument) continue;
        line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (!option.words.empty()) {
        line += fmt::format(" {} -a {}", option.argument ? "-f" : "-x",
                            shell_quoted(join(option.words, " ")));
      } else if (option.argument) {
        continue;
      } else if (!option.value.empty()) {
        line += " -r";
      }
      lines += fmt::format("{} -d {}\n", line, shell_quoted(line_of(option.what)));
    }
  });
  constexpr std::string_view kScript =
      R"(# Completion of PROGRAM for fish, made by `PROGRAM completion fish`.
function __PROGRAM_at
  set -l at ''
  set -l words (commandline -opc)
  for word in $words[2..-1]
    switch "$at $word"
      case PATHS
        set at "$at $word"
    end
  end
  test "$at" = "$argv[1]"
end
)";
  const std::string script = replaced(std::string(kScript), "PROGRAM", program.name);
  return replaced(script, "PATHS", all_paths(program, " ")) + lines;
}

void print_completion(const CommandText& program, const std::string& shell) {
  print_text(shell == "bash"  ? bash_completion(program)
             : shell == "zsh" ? zsh_completion(program)
                              : fish_completion(program));
}

}  // namespace

void add_completion_command(Command app) {
  auto shell = std::make_shared<std::string>();
  const Command command =
      app.add_command("completion", "Print a script that lets a shell complete tpudist");
  command.footer(
      "An installation has these scripts already, where the shells look for them.\n\n"
      "Example:\n  source <(tpudist completion bash)\n"
      "  tpudist completion zsh > ~/.zfunc/_tpudist\n"
      "  tpudist completion fish > ~/.config/fish/completions/tpudist.fish");
  command.add_option("shell", *shell, "The shell").required().one_of({"bash", "zsh", "fish"});
  command.run([app, shell] { print_completion(app.text(), *shell); });
}

}  // namespace tpudist
