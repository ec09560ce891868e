#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/text.hpp"
#include "launch/commands/commands.hpp"
#include "launch/program/experiment_file.hpp"
#include "launch/program/output.hpp"

namespace tpudist {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OptionText, names, value, words, what, argument, many)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CommandText, name, what, options, commands)

// The files of launch/completions, embedded by completion_scripts.cpp.in.
extern const std::string_view kBashScript, kZshScript, kFishScript;

namespace {

std::vector<std::string> known_values(const OptionText& option) {
  if (option.value == "experiment") return experiment_names();
  std::vector<std::string> words = option.words;
  if (option.value.starts_with("sweep file")) words = sweep_file_names();
  if (option.value.starts_with("sweep") && option.value.ends_with("folder"))
    std::ranges::copy(sweep_folders(), std::back_inserter(words));
  std::erase_if(words, [](const std::string& word) {
    return std::ranges::any_of(word, [](char c) { return c >= 'A' && c <= 'Z'; });
  });
  return words;
}

// Prints the words that a shell may put in place of the last word of a line: one per line, then a
// tab and the meaning. Exit code 1 if there is none: a file may be wanted.
void print_offers(const CommandText& program, const std::string& line) {
  std::vector<std::string> typed = split(line, ' ');
  const std::string last = typed.back();
  typed.pop_back();
  std::erase(typed, "");
  const CommandText* command = &program;
  const OptionText* open = nullptr;  // the option whose value comes next
  int given = 0, argument = 0;
  for (std::size_t i = 1; i < typed.size(); ++i) {
    if (open && !(open->many && typed[i].starts_with('-'))) {
      if (!open->many) open = nullptr;
      continue;
    }
    open = nullptr;
    const auto below = std::ranges::find(command->commands, typed[i], &CommandText::name);
    if (below != command->commands.end())
      command = &*below;
    else if (!typed[i].starts_with('-'))
      ++given;
    for (const OptionText& option : command->options)
      if (!option.argument && !option.value.empty() &&
          std::ranges::find(option.names, typed[i]) != option.names.end())
        open = &option;
  }
  std::map<std::string, std::string> offers;  // with their meanings
  for (const CommandText& below : command->commands) offers[below.name] = below.what;
  for (const OptionText& option : command->options) {
    const bool next = option.argument && (argument == given || (option.many && argument < given));
    argument += option.argument;
    for (const std::string& name : option.names)
      if ((!open || open->many) && !option.argument && last.starts_with('-'))
        offers[name] = option.what;
    if (open ? open == &option : next)
      for (const std::string& word : known_values(option)) offers[word];
  }
  std::erase_if(offers, [&](const auto& offer) { return !offer.first.starts_with(last); });
  if (offers.empty()) throw EndWith(1);
  for (const auto& [word, what] : offers) print("{}\t{}\n", word, what.substr(0, what.find('\n')));
}

}  // namespace

CommandText command_text(std::string_view table) {
  return nlohmann::json::parse(table).get<CommandText>();
}

void add_completion_command(Command app, std::function<CommandText()> program) {
  struct Arguments {
    std::string shell, line;
  };
  auto arguments = std::make_shared<Arguments>();
  const Command command =
      app.add_command("completion", "Print a script that lets a shell complete tpudist");
  command.footer(
      "An installation has these scripts already, where the shells look for them. They ask\n"
      "`tpudist completion words LINE` what may stand at the end of a line.\n\n"
      "Example:\n  source <(tpudist completion bash)\n"
      "  tpudist completion zsh > ~/.zfunc/_tpudist\n"
      "  tpudist completion fish > ~/.config/fish/completions/tpudist.fish");
  command.add_option("shell", arguments->shell, "The shell, words, or table: all that words knows")
      .required()
      .one_of({"bash", "zsh", "fish", "words", "table"});
  command.add_option("line", arguments->line, "Of words: what was typed, up to the cursor");
  command.run([program, arguments] {
    if (arguments->shell == "words") return print_offers(program(), arguments->line);
    if (arguments->shell == "table") return print_text(nlohmann::json(program()).dump());
    print_text(arguments->shell == "bash"  ? kBashScript
               : arguments->shell == "zsh" ? kZshScript
                                           : kFishScript);
  });
}

}  // namespace tpudist
