#include "launch/command_line.hpp"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <utility>

#include "core/error.hpp"

namespace tpudist {

Option Option::required() const {
  option_->required();
  return *this;
}

Option Option::takes(int values) const {
  option_->expected(values);
  return *this;
}

Option Option::split_at(char separator) const {
  option_->delimiter(separator);
  return *this;
}

Option Option::show_default() const {
  option_->capture_default_str();
  return *this;
}

Option Option::existing_file() const {
  option_->check(CLI::ExistingFile);
  return *this;
}

Option Option::existing_folder() const {
  option_->check(CLI::ExistingDirectory);
  return *this;
}

Option Option::existing_path() const {
  option_->check(CLI::ExistingPath);
  return *this;
}

Option Option::one_of(const std::vector<std::string>& words) const {
  option_->check(CLI::IsMember(words));
  return *this;
}

Option Option::in_range(std::int64_t least, std::int64_t most) const {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option Option::not_negative() const {
  option_->check(CLI::NonNegativeNumber);
  return *this;
}

Option Option::positive() const {
  option_->check(CLI::PositiveNumber);
  return *this;
}

Option Option::needs(Option other) const {
  option_->needs(other.option_);
  return *this;
}

Option Option::excludes(Option other) const {
  option_->excludes(other.option_);
  return *this;
}

Command Command::add_command(const std::string& name, const std::string& what) const {
  return Command(app_->add_subcommand(name, what));
}

std::vector<Command> Command::commands() const {
  std::vector<Command> commands;
  for (CLI::App* app : app_->get_subcommands([](CLI::App*) { return true; }))
    commands.push_back(Command(app));
  return commands;
}

template <typename T>
Option Command::add_option(const std::string& name, T& value, const std::string& what) const {
  return Option(app_->add_option(name, value, what));
}
template Option Command::add_option(const std::string&, std::string&, const std::string&) const;
template Option Command::add_option(const std::string&, std::filesystem::path&,
                                    const std::string&) const;
template Option Command::add_option(const std::string&, int&, const std::string&) const;
template Option Command::add_option(const std::string&, std::int64_t&, const std::string&) const;
template Option Command::add_option(const std::string&, std::uint64_t&, const std::string&) const;
template Option Command::add_option(const std::string&, double&, const std::string&) const;
template Option Command::add_option(const std::string&, std::optional<int>&,
                                    const std::string&) const;
template Option Command::add_option(const std::string&, std::vector<std::string>&,
                                    const std::string&) const;
template Option Command::add_option(const std::string&, std::vector<std::filesystem::path>&,
                                    const std::string&) const;
template Option Command::add_option(const std::string&, std::vector<std::int64_t>&,
                                    const std::string&) const;
template Option Command::add_option(const std::string&, std::vector<int>&,
                                    const std::string&) const;

Option Command::add_flag(const std::string& name, bool& value, const std::string& what) const {
  return Option(app_->add_flag(name, value, what));
}

Option Command::add_flag(const std::string& name, std::function<void()> action,
                         const std::string& what) const {
  return Option(app_->add_flag_callback(name, std::move(action), what));
}

void Command::footer(const std::string& text) const {
  app_->footer(text);
}

void Command::require_command() const {
  app_->require_subcommand(1);
}

void Command::choose_arguments_by_checks() const {
  app_->validate_positionals();
}

void Command::run(std::function<void()> action) const {
  app_->callback(std::move(action));
}

CommandLine::CommandLine(const std::string& program, const std::string& what)
    : app_(std::make_unique<CLI::App>(what, program)) {}

CommandLine::~CommandLine() = default;

Command CommandLine::program() const {
  return Command(app_.get());
}

void CommandLine::add_version(std::function<std::string()> text) {
  app_->set_version_flag("--version", std::move(text));
}

void CommandLine::parse(const std::vector<std::string>& words) {
  app_->parse(
      std::vector<std::string>(words.rbegin(), words.rend()));  // it takes them from the back
}

void refuse_value(const std::string& option, const std::string& why) {
  throw CLI::ValidationError(option, why);
}

void refuse_missing(const std::string& option) {
  throw CLI::RequiredError(option);
}

int run_command_line(CommandLine& line, const std::function<void()>& body,
                     const TellFailure& tell) {
  const int wrong_usage = static_cast<int>(ErrorKind::usage);
  try {
    body();
  } catch (const EndWith& ended) {
    return ended.exit_code();
  } catch (const CLI::ParseError& error) {  // also --help and --version, with code 0
    if (error.get_exit_code() == 0) return launched_rank() == 0 ? line.app_->exit(error) : 0;
    if (launched_ranks() > 1) return tell({error.what(), wrong_usage});
    line.app_->exit(error);
    return wrong_usage;
  } catch (const std::exception& error) {
    return tell(describe_failure(error));
  }
  return 0;
}

}  // namespace tpudist
