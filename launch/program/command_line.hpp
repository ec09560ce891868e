#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launch/program/exit_code.hpp"

// The command line of a program, over CLI11. Only command_line.cpp includes CLI11's headers,
// because they take seconds to compile; commands use the declarations here.

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tpudist {

// One option, flag or argument of a command: a handle, valid as long as the CommandLine. Checks run
// while the line is parsed; a mistake ends the program with one line that names the option.
class Option {
 public:
  Option required() const;
  // The option takes exactly `values` values.
  Option takes(int values) const;
  // A word may hold several values, separated by `separator`.
  Option split_at(char separator) const;
  // The same for a single word: the words behind it are arguments.
  Option split_word(char separator) const;
  // The help shows the current value of the variable.
  Option show_default() const;

  Option existing_file() const;
  Option existing_folder() const;
  Option existing_path() const;
  // An experiment or sweep file: find_experiment replaces a name such as "nlp" by a file. Or a
  // sweep's folder or file, found by find_sweep. `kind`: see OptionText::value.
  Option existing_experiment(const std::string& kind = "experiment") const;
  Option existing_sweep(const std::string& kind) const;
  Option one_of(const std::vector<std::string>& words) const;
  // Shells offer these words; others are allowed too. A word in capitals stands for values.
  Option offers(const std::vector<std::string>& words) const;
  Option in_range(std::int64_t least, std::int64_t most) const;
  Option not_negative() const;
  Option positive() const;

  Option needs(Option other) const;
  Option excludes(Option other) const;

 private:
  friend class Command;
  explicit Option(CLI::Option* option) : option_(option) {}
  CLI::Option* option_;
};

// The help of an option, for shell completion.
struct OptionText {
  std::vector<std::string> names = {};  // "--run-dir"; for an argument one name without dashes
  // The type: "text", "number", "file", "folder", "path", "experiment", "sweep file",
  // "sweep file or folder" or "sweep folder"; empty: a flag.
  std::string value = {};
  std::vector<std::string> words = {};  // the known values; empty: any
  std::string fallback = {};            // the default, if the help shows it
  std::string what = {};
  bool argument = false, required = false, many = false;

  // The allowed values: "a|b" for fixed words, else the type, with dots if it may be repeated.
  std::string value_text() const;
};

// The help of a command.
struct CommandText {
  std::string name, what;
  std::vector<OptionText> options;  // with arguments, in the order of their definition
  std::vector<CommandText> commands;
};

// A command of a program, or the program itself: a handle, valid as long as the CommandLine.
class Command {
 public:
  Command add_command(const std::string& name, const std::string& what) const;
  std::vector<Command> commands() const;
  // The help of this command and of all commands that have been added below it.
  CommandText text() const;

  // An option (`--name`) or an argument (`name`) whose value is stored in `value`, which must
  // outlive the CommandLine. T is a string, path, integer, double, or a vector or optional of them;
  // command_line.cpp lists the types.
  template <typename T>
  Option add_option(const std::string& name, T& value, const std::string& what) const;
  Option add_flag(const std::string& name, bool& value, const std::string& what) const;
  // A flag that acts as soon as it is read.
  Option add_flag(const std::string& name, std::function<void()> action,
                  const std::string& what) const;

  void footer(const std::string& text) const;
  // The line must name a sub-command.
  void require_command() const;
  // Sets the action of the command, which runs when the whole line is parsed.
  void run(std::function<void()> action) const;

 private:
  friend class CommandLine;
  explicit Command(CLI::App* app) : app_(app) {}
  CLI::App* app_;
};

// A program's command line.
class CommandLine {
 public:
  CommandLine(const std::string& program, const std::string& what);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Command program() const;
  void add_version(std::function<std::string()> text);

  // Parses the words after the program's name and runs the command that they name. Throws what the
  // command throws, and for a wrong line or --help what run_command_line handles.
  void parse(const std::vector<std::string>& words);

 private:
  friend int run_command_line(CommandLine& line, const std::function<void()>& body,
                              const PrintFailure& print);
  std::unique_ptr<CLI::App> app_;
};

// Thrown by a command that has already printed everything: the process ends with this code.
class EndWith : public std::exception {
 public:
  explicit EndWith(int exit_code) : exit_code_(exit_code) {}
  const char* what() const noexcept override { return "the command ends the process"; }
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

// Throws ConfigError when two of these key=value pairs set one key, even as a part of a block: the
// last pair would win silently. Arguments named "overrides" are checked before their command runs.
void refuse_keys_given_twice(const std::vector<std::string>& settings);

// Throws the same error as parsing, for a command that finds only at run time that an option's value
// is wrong.
[[noreturn]] void refuse_value(const std::string& option, const std::string& why);

// Runs `body`, which adds the commands to `line` and parses. Returns the exit code of the process:
// 0, the code of an error (which is passed to `print`), or the code of EndWith. Both programs end
// this way. Only rank 0 prints help and version.
int run_command_line(CommandLine& line, const std::function<void()>& body,
                     const PrintFailure& print = print_failure);

}  // namespace tpudist
