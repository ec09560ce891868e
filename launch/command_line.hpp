#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launch/exit_code.hpp"

// The command line of a program, over CLI11. Its headers take seconds to compile, so command_line.cpp alone
// includes them, and commands see these declarations.

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tpudist {

// One option, flag or argument of a command: a handle, valid as long as the CommandLine. What is asked of it
// is checked while the line is parsed; a mistake ends the program with one line that names the option.
class Option {
 public:
  Option required() const;
  // It takes exactly so many values.
  Option takes(int values) const;
  // One word may hold several values with this between them.
  Option split_at(char separator) const;
  // The help shows the value that the variable has now.
  Option show_default() const;

  Option existing_file() const;
  Option existing_folder() const;
  Option existing_path() const;
  // An experiment or sweep file; a name such as "nlp" becomes the file that find_experiment finds.
  Option existing_experiment() const;
  Option one_of(const std::vector<std::string>& words) const;
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

// What the help of an option says, for man pages and shells.
struct OptionText {
  std::vector<std::string> names = {};  // "--run-dir"; of an argument one without dashes
  std::string value = {};               // what it takes, "text", "number" or "file"; empty: a flag
  std::vector<std::string> words = {};  // the only values that it may have; empty: any
  std::string fallback = {};            // its default, where the help shows it
  std::string what = {};
  bool argument = false, required = false, many = false;
};

// What the help of a command says.
struct CommandText {
  std::string name, what, footer;
  std::vector<OptionText> options;  // arguments among them, in the order in which they are given
  std::vector<CommandText> commands;
};

// A command of a program, or the program itself: a handle, valid as long as the CommandLine.
class Command {
 public:
  Command add_command(const std::string& name, const std::string& what) const;
  std::vector<Command> commands() const;
  // This command and all below it, as far as they have been added.
  CommandText text() const;

  // An option (`--name`) or an argument (`name`) whose value goes to `value`, which must outlive the
  // CommandLine. For strings, paths, whole numbers, double, vectors of them and optional values:
  // command_line.cpp lists the types.
  template <typename T>
  Option add_option(const std::string& name, T& value, const std::string& what) const;
  Option add_flag(const std::string& name, bool& value, const std::string& what) const;
  // A flag that does something as soon as it is read.
  Option add_flag(const std::string& name, std::function<void()> action,
                  const std::string& what) const;

  void footer(const std::string& text) const;
  // It is nothing without one of its commands.
  void require_command() const;
  // An argument goes to the first of `name`s whose checks accept it.
  void choose_arguments_by_checks() const;
  // What the command does when all of its line is parsed.
  void run(std::function<void()> action) const;

 private:
  friend class CommandLine;
  explicit Command(CLI::App* app) : app_(app) {}
  CLI::App* app_;
};

// The whole of it.
class CommandLine {
 public:
  CommandLine(const std::string& program, const std::string& what);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Command program() const;
  void add_version(std::function<std::string()> text);

  // Parses the words behind the program's name, and runs the command that they name. Throws what the command
  // throws, and, for a wrong line or for --help, what run_command_line understands.
  void parse(const std::vector<std::string>& words);

 private:
  friend int run_command_line(CommandLine& line, const std::function<void()>& body,
                              const TellFailure& tell);
  std::unique_ptr<CLI::App> app_;
};

// Thrown by a command that has said all that is to be said: the process ends with this code.
class EndWith : public std::exception {
 public:
  explicit EndWith(int exit_code) : exit_code_(exit_code) {}
  const char* what() const noexcept override { return "the command ends the process"; }
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

// For a command that finds only when it runs that an option has a wrong value, or that one is missing: throws
// as parsing would.
[[noreturn]] void refuse_value(const std::string& option, const std::string& why);
[[noreturn]] void refuse_missing(const std::string& option);

// Runs `body`, which gives the commands to `line` and parses, and returns the exit code of the process: 0, that
// of an error, which `tell` is given, or that of EndWith. Both programs end this way. Help and version are
// printed by rank 0 alone.
int run_command_line(CommandLine& line, const std::function<void()>& body,
                     const TellFailure& tell = print_failure);

}  // namespace tpudist
