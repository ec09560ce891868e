#include <filesystem>
#include <memory>
#include <vector>

#include "core/file_system.hpp"
#include "core/log.hpp"
#include "core/numbers.hpp"
#include "launch/commands/commands.hpp"
#include "launch/program/output.hpp"
#include "results/report/report.hpp"

namespace tpudist {
namespace {

struct ReportArguments {
  std::vector<std::filesystem::path> inputs;
  std::filesystem::path html = "report.html", csv;
  bool no_ceilings = false;
};

void write_csv(const Report& report, const std::filesystem::path& folder) {
  make_folder(folder);
  const auto files = report_csv(report);
  for (const auto& [name, text] : files) write_file_atomically(folder / name, text);
  print("{}: {}\n", folder.string(), counted(std::ssize(files), "table"));
}

void run(const ReportArguments& arguments) {
  check_output(arguments.html);
  const Report report = make_report(read_results(arguments.inputs), !arguments.no_ceilings);
  for (const std::string& note : report.notes) spdlog::warn("{}", note);
  write_file_atomically(arguments.html, report_html(report));
  print("{}: {}\n", arguments.html.string(), report.subtitle);
  if (!arguments.csv.empty()) write_csv(report, arguments.csv);
}

}  // namespace

void add_report_command(Command app) {
  auto arguments = std::make_shared<ReportArguments>();
  const Command command =
      app.add_command("report", "Write one HTML page of what runs or a sweep reached");
  command.footer(
      "Runs may still be training. The page needs no network and no other file.\n\n"
      "Example:\n  tpudist report runs/ --html report.html\n"
      "  tpudist report sweeps/folds --csv tables");
  command
      .add_option("inputs", arguments->inputs,
                  "Folders of runs, of a sweep, or that hold such folders; files of predictions")
      .required()
      .existing_path();
  command.add_option("--html", arguments->html, "The page").show_default();
  command.add_option("--csv", arguments->csv, "Write the tables of the page into this folder");
  command.add_flag("--no-ceilings", arguments->no_ceilings,
                   "Leave out the noise ceilings, which take most of the time");
  command.run([arguments] { run(*arguments); });
}

}  // namespace tpudist
