// SPDX-License-Identifier: Apache-2.0
#include "cli/module_report.h"

#include <charconv>
#include <cmath>
#include <sstream>
#include <string>

namespace tessera::cli {
namespace {

using benchmark::BenchmarkReporter;

#ifdef NDEBUG
constexpr bool kIsRelease = true;
#else
constexpr bool kIsRelease = false;
#endif

/// What the library says of its own build.
std::string WithoutLibraryBuild(std::string text) {
  constexpr std::string_view kWarning = "***WARNING*** Library was built as DEBUG";
  if (const size_t at = text.find(kWarning); at != std::string::npos)
    text.erase(at, text.find('\n', at) + 1 - at);
  constexpr std::string_view kType = R"("library_build_type": "debug")";
  if (const size_t at = text.find(kType); at != std::string::npos)
    text.replace(at, kType.size(), R"("library_build_type": "release")");
  return text;
}

template <class Base>
class ModuleReporter : public Base {
 public:
  using Base::Base;

  bool ReportContext(const BenchmarkReporter::Context& context) override {
    if (!kIsRelease) return Base::ReportContext(context);
    std::ostream& out = this->GetOutputStream();
    std::ostream& err = this->GetErrorStream();
    std::ostringstream out_text, err_text;
    this->SetOutputStream(&out_text);
    this->SetErrorStream(&err_text);
    const bool goes_on = Base::ReportContext(context);
    this->SetOutputStream(&out);
    this->SetErrorStream(&err);
    out << WithoutLibraryBuild(out_text.str());
    err << WithoutLibraryBuild(err_text.str());
    return goes_on;
  }

  void ReportRuns(const std::vector<BenchmarkReporter::Run>& runs) override {
    std::vector<BenchmarkReporter::Run> named = runs;
    for (BenchmarkReporter::Run& run : named) run.run_name.iterations.clear();
    Base::ReportRuns(named);
  }
};

template <class T>
std::optional<T> Whole(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::unique_ptr<BenchmarkReporter> MakeModuleReporter(std::string_view format,
                                                      ModuleReportStyle style) {
  if (format == "json") return std::make_unique<ModuleReporter<benchmark::JSONReporter>>();
  if (format == "csv") {
// Deprecated for years, and what --benchmark_format=csv of the library makes.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    return std::make_unique<ModuleReporter<benchmark::CSVReporter>>();
#pragma GCC diagnostic pop
  }
  using Console = benchmark::ConsoleReporter;
  const int options =
      (style.in_color ? Console::OO_Color : 0) | (style.tabular ? Console::OO_Tabular : 0);
  return std::make_unique<ModuleReporter<Console>>(static_cast<Console::OutputOptions>(options));
}

std::optional<MinTime> ParseMinTime(std::string_view text) {
  MinTime time;
  if (text.ends_with('x')) {
    const auto iterations = Whole<int64_t>(text.substr(0, text.size() - 1));
    if (!iterations || *iterations < 1 || *iterations > 1'000'000'000) return std::nullopt;
    time.iterations = *iterations;
    return time;
  }
  if (text.ends_with('s')) text.remove_suffix(1);
  const auto seconds = Whole<double>(text);
  if (!seconds || !std::isfinite(*seconds) || *seconds < 0) return std::nullopt;
  time.seconds = *seconds;
  return time;
}

}  // namespace tessera::cli
