#include "launch/program/command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/process.hpp"
#include "core/text.hpp"
#include "launch/program/experiment_file.hpp"

namespace tpudist {
namespace {

// A check of CLI11 with our own message about `word`. CLI11's checks print limits with 309 digits,
// and accept "nan".
template <typename Accepts>
CLI::Validator check(const std::string& shown_in_help, Accepts accepts, const std::string& what) {
  return CLI::Validator(
      [=](const std::string& word) {
        return accepts(word) ? "" : fmt::format("\"{}\" is {}", word, what);
      },
      shown_in_help);
}

template <typename Accepts>
CLI::Validator check_number(const std::string& shown_in_help, Accepts accepts,
                            const std::string& what) {
  const auto accepts_word = [=](const std::string& word) {
    double value = 0;
    return CLI::detail::lexical_cast(word, value) && std::isfinite(value) && accepts(value);
  };
  return check(shown_in_help, accepts_word, what);
}

enum class PathKind { file, folder, any };

CLI::Validator check_path(const std::string& shown_in_help, PathKind kind) {
  return CLI::Validator(
      [=](const std::string& path) -> std::string {
        std::error_code error;
        const auto status = std::filesystem::status(path, error);
        const bool folder = std::filesystem::is_directory(status);
        if (!std::filesystem::exists(status)) {
          const char* missing = kind == PathKind::file     ? "file"
                                : kind == PathKind::folder ? "folder"
                                                           : "file or folder";
          const auto accepts = [&](const std::filesystem::directory_entry& entry) {
            return kind == PathKind::any || entry.is_directory(error) == (kind == PathKind::folder);
          };
          return fmt::format("there is no {} \"{}\"{}", missing, path,
                             near_path(path, accepts, {"runs", "sweeps"}));
        }
        if (kind == PathKind::file && folder)
          return fmt::format("\"{}\" is a folder; give a file", path);
        if (kind == PathKind::folder && !folder)
          return fmt::format("\"{}\" is no folder; give one", path);
        return "";
      },
      shown_in_help);
}

// CLI11's message about a wrong line, as one line in the style of all other errors.
std::string describe(const CLI::ParseError& error) {
  std::string text = error.what();
  const auto take = [&text](std::string_view start) {
    if (text.rfind(start, 0) != 0) return false;
    text.erase(0, start.size());
    return true;
  };
  if (take("Could not convert: ")) {
    text = fmt::format("cannot read {}", text);
  } else if (take("The following argument was not expected: ") ||
             take("The following arguments were not expected: ")) {
    text = fmt::format("not expected: {}", text);
  } else if (text == "sweep is required") {
    const std::vector<std::string> folders = sweep_folders();
    if (!folders.empty()) text += fmt::format("; there are {}", fmt::join(folders, ", "));
  } else if (take("A subcommand is required")) {
    text = "a command is required";
  } else if (const auto end = text.find(": 1 required "); end != std::string::npos) {
    text = fmt::format("{} needs a value", text.substr(0, end));
  } else if (dynamic_cast<const CLI::ValidationError*>(&error) && text[0] != '-') {
    text.erase(0, text.find(": ") + 2);  // users never see the names of positional arguments
  }
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// The program and the commands that the line names.
std::string named_commands(const CLI::App& program) {
  std::string text = program.get_name();
  for (const CLI::App* app = &program; !app->get_subcommands().empty();) {
    app = app->get_subcommands().front();
    text += " " + app->get_name();
  }
  return text;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

bool takes_settings(const CLI::App& app) {
  return !app.get_options([](const CLI::Option* o) { return o->get_name() == "overrides"; })
              .empty();
}

[[noreturn]] void refuse_command(const CLI::App& app, const std::string& path,
                                 const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
  const std::string nearest = nearest_of(word, names);
  std::string advice = fmt::format("`{} --help` lists them", path);
  if (!nearest.empty()) advice = fmt::format("did you mean `{} {}`?", path, nearest);
  if (word.ends_with(".yaml") && !app.get_parent())
    advice = fmt::format("did you mean `{} train {}`?", path, word);
  throw ConfigError(fmt::format("{} has no command \"{}\"; {}", path, word, advice));
}

// `words[at]` is the option; its value, if any, is in the same word or in the next.
[[noreturn]] void refuse_option(const CLI::App& app, const std::string& path,
                                const std::vector<std::string>& words, std::size_t at) {
  std::string word = words[at];
  std::replace(word.begin(), word.end(), '\n', ' ');
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& known : option->get_lnames()) names.push_back("--" + known);
  const std::string nearest = nearest_of(name, names);
  std::string advice = fmt::format("`{} --help` lists them", path);
  const bool follows = word == name && at + 1 < words.size() && !words[at + 1].starts_with('-');
  const std::string value = word != name ? word.substr(name.size() + 1)
                            : follows    ? words[at + 1]
                                         : "VALUE";
  const bool has_ranks = app.get_footer().find("mpirun -np") != std::string::npos;
  if (has_ranks && (name == "-n" || name == "-np" || name == "--np")) {
    advice = fmt::format("mpirun starts the ranks: `mpirun -np {} tpudist", value);
    for (std::size_t i = 0; i < words.size(); ++i)
      if (i != at && !(follows && i == at + 1)) advice += " " + shell_word(words[i]);
    advice += "`";
  } else if (takes_settings(app) && name.find('.') != std::string::npos) {
    const std::string key = name.substr(name.find_first_not_of('-'));
    advice = fmt::format("settings of the file stand without dashes: {}={}", key, value);
  } else if (!nearest.empty()) {
    advice = fmt::format("did you mean {}?", nearest);
  } else if (takes_settings(app)) {
    advice += "; settings of the file stand without dashes, e.g. train.steps=100";
  } else if (!commands_of(app).empty()) {
    advice = fmt::format("options stand after the command, see `{} --help`", path);
  }
  throw ConfigError(fmt::format("{} has no option {}; {}", path, name, advice));
}

// CLI11 reports an unknown word only after all other mistakes, and suggests no word near it.
void refuse_unknown_words(const CLI::App& program, const std::vector<std::string>& words) {
  const CLI::App* app = &program;
  std::string path = program.get_name();
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") return;
    const bool is_option = word.size() > 1 && word[0] == '-' &&
                           !std::isdigit(static_cast<unsigned char>(word[1])) && word[1] != '.';
    if (is_option) {
      const CLI::Option* option = app->get_option_no_throw(word.substr(0, word.find('=')));
      if (!option) refuse_option(*app, path, words, i);
      // These options take the next word, whatever it looks like.
      if (word.find('=') == std::string::npos)
        i += static_cast<std::size_t>(option->get_items_expected_min());
      continue;
    }
    const std::vector<const CLI::App*> commands = commands_of(*app);
    if (commands.empty()) continue;
    const auto known = std::ranges::find(commands, word, &CLI::App::get_name);
    if (known == commands.end()) refuse_command(*app, path, word);
    app = *known;
    path += " " + word;
  }
}

// CLI11's type names contain the kind of a value and its allowed words: "TEXT:FILE", "INT:INT in [1
// - 8]", "TEXT:{a,b}".
OptionText text_of(const CLI::Option& option) {
  OptionText text{.what = option.get_description(),
                  .argument = option.get_positional(),
                  .required = option.get_required(),
                  .many = option.get_items_expected_max() > 1};
  if (text.argument) text.names.push_back(option.get_name(true));
  for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  if (option.get_items_expected_max() == 0) return text;
  const std::string type = option.get_type_name(), kind = type.substr(0, type.find(':'));
  text.fallback = option.get_default_str();
  text.value = kind == "TEXT" ? "text" : "number";
  for (const auto& [mark, name] : {std::pair{":FILE", "file"},
                                   {":DIR", "folder"},
                                   {":PATH", "path"},
                                   {":experiment", "experiment"},
                                   {":sweep file", "sweep file"},
                                   {":sweep file or folder", "sweep file or folder"},
                                   {":sweep folder", "sweep folder"}})
    if (type.find(mark) != std::string::npos) text.value = name;
  const std::size_t begin = type.find('{'), end = type.find('}');
  if (begin < end && end != std::string::npos)
    text.words = split(std::string_view(type).substr(begin + 1, end - begin - 1), ',');
  return text;
}

CommandText text_of(const CLI::App& app) {
  CommandText text{app.get_name(), app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options()) text.options.push_back(text_of(*option));
  for (const CLI::App* command : commands_of(app)) text.commands.push_back(text_of(*command));
  return text;
}

// The help, with the types of options in words.
class HelpPage : public CLI::Formatter {
  std::string make_option_opts(const CLI::Option* option) const override {
    return " " + text_of(*option).value_text();
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const OptionText text = text_of(*option);
    if (text.required) return text.what + " (required)";
    return text.what + (text.fallback.empty() ? "" : fmt::format(" (default: {})", text.fallback));
  }
};

}  // namespace

std::string OptionText::value_text() const {
  if (value.empty()) return "";
  return (words.empty() ? value : join(words, "|")) + (many ? " ..." : "");
}

Option Option::required() const {
  return Option(option_->required());
}

Option Option::takes(int values) const {
  return Option(option_->expected(values));
}

Option Option::split_at(char separator) const {
  return Option(option_->delimiter(separator));
}

Option Option::split_word(char separator) const {
  return Option(option_->delimiter(separator)->allow_extra_args(false));
}

Option Option::show_default() const {
  option_->capture_default_str();
  return *this;
}

Option Option::existing_file() const {
  return Option(option_->check(check_path("FILE", PathKind::file)));
}

Option Option::existing_folder() const {
  return Option(option_->check(check_path("DIR", PathKind::folder)));
}

Option Option::existing_path() const {
  return Option(option_->check(check_path("PATH(existing)", PathKind::any)));
}

Option Option::existing_experiment(const std::string& kind) const {
  return Option(option_->transform(
      [](const std::string& name) { return find_experiment(name).string(); }, kind));
}

Option Option::existing_sweep(const std::string& kind) const {
  return Option(
      option_->transform([](const std::string& name) { return find_sweep(name).string(); }, kind));
}

Option Option::one_of(const std::vector<std::string>& words) const {
  return Option(option_->check(CLI::Validator(
      [words](const std::string& word) -> std::string {
        if (std::ranges::find(words, word) != words.end()) return "";
        return fmt::format("\"{}\" is none of {}{}", word, fmt::join(words, ", "),
                           did_you_mean(word, words));
      },
      fmt::format("{{{}}}", fmt::join(words, ",")))));
}

Option Option::offers(const std::vector<std::string>& words) const {
  return Option(option_->check(CLI::Validator([](const std::string&) { return std::string(); },
                                              fmt::format("{{{}}}", fmt::join(words, ",")))));
}

Option Option::in_range(std::int64_t least, std::int64_t most) const {
  const auto within = [=](const std::string& word) {
    std::int64_t value = 0;
    return CLI::detail::lexical_cast(word, value) && value >= least && value <= most;
  };
  return Option(option_->check(check(fmt::format("INT in [{} - {}]", least, most), within,
                                     fmt::format("no whole number from {} to {}", least, most))));
}

Option Option::not_negative() const {
  return Option(option_->check(check_number(
      "NONNEGATIVE", [](double value) { return value >= 0; }, "no number that is 0 or more")));
}

Option Option::positive() const {
  return Option(option_->check(check_number(
      "POSITIVE", [](double value) { return value > 0; }, "no number above 0")));
}

Option Option::needs(Option other) const {
  return Option(option_->needs(other.option_));
}

Option Option::excludes(Option other) const {
  return Option(option_->excludes(other.option_));
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

CommandText Command::text() const {
  return text_of(*app_);
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
template Option Command::add_option(const std::string&, std::vector<double>&,
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

void Command::run(std::function<void()> action) const {
  app_->callback([app = app_, action = std::move(action)] {
    if (const CLI::Option* settings = app->get_option_no_throw("overrides"))
      refuse_keys_given_twice(settings->results());
    action();
  });
}

CommandLine::CommandLine(const std::string& program, const std::string& what)
    : app_(std::make_unique<CLI::App>(what, program)) {
  app_->formatter(std::make_shared<HelpPage>());
}

CommandLine::~CommandLine() = default;

Command CommandLine::program() const {
  return Command(app_.get());
}

void CommandLine::add_version(std::function<std::string()> text) {
  app_->set_version_flag("--version", std::move(text));
}

void CommandLine::parse(const std::vector<std::string>& words) {
  refuse_unknown_words(*app_, words);
  app_->parse(
      std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 takes them from the back
}

void refuse_keys_given_twice(const std::vector<std::string>& settings) {
  std::multiset<std::string> keys;
  for (const std::string& setting : settings)
    keys.insert(setting.substr(0, setting.find('=')) + ".");
  const auto holds = [](const auto& key, const auto& next) { return next.starts_with(key); };
  const auto at = std::ranges::adjacent_find(keys, holds);
  if (at == keys.end()) return;
  const std::string block = at->substr(0, at->size() - 1);
  const std::string key = std::next(at)->substr(0, std::next(at)->size() - 1);
  throw ConfigError(fmt::format("the key {} is given twice{}; leave one out", key,
                                key == block ? "" : ", also in " + block));
}

void refuse_value(const std::string& option, const std::string& why) {
  throw CLI::ValidationError(option, why);
}

int run_command_line(CommandLine& line, const std::function<void()>& body,
                     const PrintFailure& print) {
  const int wrong_usage = static_cast<int>(ErrorKind::usage);
  try {
    body();
  } catch (const EndWith& ended) {
    return ended.exit_code();
  } catch (const CLI::ParseError& error) {  // also --help and --version, with code 0
    if (error.get_exit_code() == 0) return launched_rank() == 0 ? line.app_->exit(error) : 0;
    return print({fmt::format("{}; see `{} --help`", describe(error), named_commands(*line.app_)),
                  wrong_usage});
  } catch (const std::exception& error) {
    return print(describe_failure(error));
  }
  return 0;
}

}  // namespace tpudist
