#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/schema/collection.hpp"
#include "launch/commands/commands.hpp"
#include "launch/sweep/sweep_file.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {
namespace {

using Json = nlohmann::json;

// Adds the keys of a JSON Schema as `key=`, with each value if the schema lists values.
void add_settings(const Json& schema, const std::string& path, std::vector<std::string>& words) {
  const Json properties = schema.value("properties", Json::object());
  for (const auto& [name, value] : properties.items()) {
    if (name == "include") continue;  // works only in files
    for (const Json& kind : value.value("anyOf", Json::array({value}))) {
      const std::string key = path + name;
      add_settings(kind, key + ".", words);
      std::vector<std::string> values = kind.value("enum", std::vector<std::string>{});
      if (kind.value("type", Json()) == "boolean") values = {"true", "false"};
      if (values.empty() && kind.contains("type") && !kind.contains("properties")) values = {""};
      for (const std::string& each : values) words.push_back(key + "=" + each);
    }
  }
}

std::vector<std::string> settings_of(const std::string& schema) {
  std::vector<std::string> words;
  add_settings(Json::parse(schema), "", words);
  return words;
}

// Adds the allowed words of options and arguments that list none.
void add_words(CommandText& command, const std::vector<std::string>& settings) {
  for (OptionText& option : command.options) {
    if (option.names.front() == "overrides") option.words = settings;
    if (option.names.front().starts_with("--collection"))
      option.words = Collection::tpugraphs_names();
  }
  for (CommandText& below : command.commands)
    add_words(below, below.name == "sweep" ? settings_of(sweep_schema()) : settings);
}

}  // namespace

CommandText text_with_words(Command app) {
  std::vector<std::string> settings = settings_of(experiment_schema());
  for (const std::string& name : Collection::tpugraphs_names())
    settings.push_back("data.collection=" + name);
  CommandText text = app.text();
  add_words(text, settings);
  return text;
}

}  // namespace tpudist
