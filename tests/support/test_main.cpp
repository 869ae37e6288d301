// The main function of every test binary: Catch2's, with a limit on the time of a test case, and a list of what was
// skipped. A case skips by WARN("skipped: why"). Exit status 77, which CTest counts as skipped: all that ran was
// skipped.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include "support/case_limit.hpp"

#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::test {
namespace {

constexpr int exit_skipped = 77;
constexpr std::string_view skip_word = "skipped: ";

struct Skips {
  std::vector<std::string> cases;  // name and reason
  std::size_t whole = 0;           // cases that asserted nothing
  std::size_t ran = 0;
};

Skips& skips() {
  static Skips of_this_process;
  return of_this_process;
}

// Empty: the assertion is no skip.
std::string reason_to_skip(const Catch::AssertionStats& stats) {
  const Catch::AssertionResult& result = stats.assertionResult;
  if (result.getResultType() != Catch::ResultWas::Warning || !result.hasMessage()) return {};
  const std::string message = result.getMessage();
  return message.starts_with(skip_word) ? message.substr(skip_word.size()) : std::string();
}

class Cases final : public Catch::TestEventListenerBase {
 public:
  using TestEventListenerBase::TestEventListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    TestEventListenerBase::testCaseStarting(info);
    reason_.clear();
    limit_.begin(info.name);
  }

  // Catch2 has no lock: an assertion of another thread breaks one of the test's own, now and then.
  void assertionStarting(const Catch::AssertionInfo& info) override {
    if (pthread_equal(pthread_self(), own_thread_) != 0) return;
    std::fprintf(stderr, "%s:%zu: %s on another thread than the test's own\n", info.lineInfo.file, info.lineInfo.line,
                 std::string(info.macroName).c_str());
    std::abort();
  }

  bool assertionEnded(const Catch::AssertionStats& stats) override {
    if (const std::string reason = reason_to_skip(stats); !reason.empty()) reason_ = reason;
    return true;
  }

  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    limit_.end();
    ++skips().ran;
    if (reason_.empty()) return;
    skips().cases.push_back(stats.testInfo.name + ": " + reason_);
    if (stats.totals.assertions.total() == 0) ++skips().whole;
  }

 private:
  const pthread_t own_thread_ = pthread_self();
  CaseLimit limit_;
  std::string reason_;
};

CATCH_REGISTER_LISTENER(Cases)

// Catch2's own, without the skips: their list comes at the end, and between them a failure was hard to find.
class WithoutSkips final : public Catch::ConsoleReporter {
 public:
  using ConsoleReporter::ConsoleReporter;
  static std::string getDescription() { return "console's, skips at the end alone"; }

  bool assertionEnded(const Catch::AssertionStats& stats) override {
    return !reason_to_skip(stats).empty() || ConsoleReporter::assertionEnded(stats);
  }
};

CATCH_REGISTER_REPORTER("without_skips", WithoutSkips)

// To the file of KILN_TEST_SKIPPED too, which scripts/test prints: CTest shows nothing of a test that passed.
void report_skips() {
  const char* const file = std::getenv("KILN_TEST_SKIPPED");
  std::ofstream list;
  if (file != nullptr && *file != '\0') list.open(file, std::ios::trunc);
  if (!skips().cases.empty()) {
    std::cout << "skipped " << skips().cases.size() << " of " << skips().ran << " test cases, " << skips().whole
              << " of them whole:\n";
  }
  for (const std::string& one : skips().cases) {
    std::cout << "  " << one << "\n";
    list << one << "\n";
  }
}

// Leaves the cases of part I of N, of KILN_TEST_PART="I/N": every Nth of those that would run, so that parts take about
// as long. false: it is no such text.
bool choose_part(Catch::Session& session, const char* text) {
  unsigned part = 0, parts = 0;
  if (std::sscanf(text, "%u/%u", &part, &parts) != 2 || part == 0 || part > parts) return false;
  std::string names;
  unsigned at = 0;
  const Catch::Config& config = session.config();
  for (const Catch::TestCase& one :
       Catch::filterTests(Catch::getAllTestCasesSorted(config), config.testSpec(), config)) {
    if (at++ % parts != part - 1) continue;
    if (!names.empty()) names += ',';
    for (const char letter : one.name) {
      if (std::string_view("\\,[]\"").find(letter) != std::string_view::npos) names += '\\';
      names += letter;
    }
  }
  session.configData().testsOrTags = {names};
  session.useConfigData(Catch::ConfigData(session.configData()));
  return true;
}

}  // namespace
}  // namespace kiln::test

int main(int argc, char** argv) {
  using kiln::test::skips;
  Catch::Session session;
  session.configData().reporterName = "without_skips";
  if (const int wrong = session.applyCommandLine(argc, argv); wrong != 0) return wrong;
  const char* const part = std::getenv("KILN_TEST_PART");
  if (part != nullptr && !kiln::test::choose_part(session, part)) {
    std::cerr << "KILN_TEST_PART: found '" << part << "', expected I/N such as 2/6\n";
    return 1;
  }
  unsetenv("KILN_TEST_PART");  // what a child runs is not this process's part
  const int status = session.run();
  kiln::test::report_skips();
  return status == 0 && skips().ran != 0 && skips().whole == skips().ran ? kiln::test::exit_skipped : status;
}
