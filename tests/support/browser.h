// A real browser for tests: Debian's chromium without a window, asked through a pipe by the Chrome
// DevTools Protocol (https://chromedevtools.github.io/devtools-protocol).
//
// One test thread; each question waits for its answer for tests::kPatience. The browser reaches
// 127.0.0.1 only, and ends with this object.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/unique_fd.h"
#include "tests/support/eventually.h"
#include "tests/support/patience.h"

namespace ferry::tests {

class Browser {
 public:
  static constexpr char kProgram[] = "/usr/bin/chromium";
  static bool IsInstalled() { return access(kProgram, X_OK) == 0; }

  Browser(int width, int height) {
    int to[2];
    int from[2];
    signal(SIGPIPE, SIG_IGN);  // a browser that has died is told by its answers
    EXPECT_EQ(pipe2(to, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(from, O_CLOEXEC), 0);
    EXPECT_NE(mkdtemp(profile_.data()), nullptr);
    const std::vector<std::string> words = {
        kProgram,
        "--headless",
        "--no-sandbox",
        "--remote-debugging-pipe",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-extensions",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--hide-scrollbars",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        "--window-size=" + std::to_string(width) + "," + std::to_string(height),
        "--user-data-dir=" + profile_,
        "about:blank"};
    std::vector<char*> arguments;
    for (const std::string& word : words) {
      arguments.push_back(const_cast<char*>(word.c_str()));
    }
    arguments.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      setpgid(0, 0);
      setenv("HOME", profile_.c_str(), 1);
      // The protocol's ends are 3 and 4.
      const int in = fcntl(to[0], F_DUPFD, 10);
      const int out = fcntl(from[1], F_DUPFD, 10);
      const int log = open((profile_ + "/log").c_str(), O_WRONLY | O_CREAT, 0600);
      dup2(in, 3);
      dup2(out, 4);
      dup2(log, 1);
      dup2(log, 2);
      close(in);
      close(out);
      execv(kProgram, arguments.data());
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    in_ = UniqueFd(to[1]);
    out_ = UniqueFd(from[0]);
    const std::string target =
        Ask("Target.createTarget", {{"url", "about:blank"}}).value("targetId", "");
    session_ = Ask("Target.attachToTarget", {{"targetId", target}, {"flatten", true}})
                   .value("sessionId", "");
    Ask("Page.enable");
    Ask("Runtime.enable");
    Ask("Log.enable");
    Ask("Emulation.setDeviceMetricsOverride",
        {{"width", width}, {"height", height}, {"deviceScaleFactor", 1}, {"mobile", false}});
  }
  ~Browser() {
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    // Its children go on for a moment, and write there.
    Eventually(
        [&] {
          std::error_code error;
          std::filesystem::remove_all(profile_, error);
          return !std::filesystem::exists(profile_);
        },
        std::chrono::milliseconds(20));
  }
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  void Open(const std::string& address) { Ask("Page.navigate", {{"url", address}}); }
  // The value of an expression in the page; null if it throws, as while the page is not there yet,
  // and if another page takes its place meanwhile.
  nlohmann::json Evaluate(const std::string& expression) {
    const nlohmann::json result =
        Ask("Runtime.evaluate", {{"expression", expression}, {"returnByValue", true}}, kPageLeft);
    return result.contains("exceptionDetails") || !result.contains("result")
               ? nlohmann::json()
               : result["result"].value("value", nlohmann::json());
  }
  // Waits until the expression is true.
  bool Awaits(const std::string& expression) {
    return Eventually([&] { return Evaluate(expression) == true; }, std::chrono::milliseconds(20));
  }
  void SetDark(bool dark) {
    Ask("Emulation.setEmulatedMedia",
        {{"features", {{{"name", "prefers-color-scheme"}, {"value", dark ? "dark" : "light"}}}}});
  }
  // Keeps a picture of the whole page among the test's outputs, for people.
  void Picture(const std::string& name) {
    const nlohmann::json result =
        Ask("Page.captureScreenshot", {{"format", "png"}, {"captureBeyondViewport", true}});
    const std::string png = Decoded(result.value("data", ""));
    EXPECT_TRUE(png.starts_with("\x89PNG")) << name;
    if (const char* folder = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR")) {
      std::ofstream(std::string(folder) + "/" + name + ".png", std::ios::binary) << png;
    }
  }
  // Exceptions, and what the browser's console says: refusals of the page's policy, too.
  const std::vector<std::string>& complaints() const { return complaints_; }

 private:
  static constexpr char kPageLeft[] = "Inspected target navigated or closed";

  // An empty object after an error, which fails the test unless it has the text `allowed`.
  nlohmann::json Ask(const std::string& method,
                     const nlohmann::json& parameters = nlohmann::json::object(),
                     const std::string& allowed = "") {
    const int id = ++asked_;
    nlohmann::json question = {{"id", id}, {"method", method}, {"params", parameters}};
    if (!session_.empty()) {
      question["sessionId"] = session_;
    }
    const std::string text = question.dump();
    if (write(in_.get(), text.c_str(), text.size() + 1) != static_cast<ssize_t>(text.size() + 1)) {
      ADD_FAILURE() << "the browser does not listen: " << method;
      return {};
    }
    while (true) {
      const nlohmann::json said = Hear();
      if (said.is_null()) {
        ADD_FAILURE() << "the browser says nothing to " << method;
        return {};
      }
      if (said.value("id", 0) == id) {
        if (said.contains("error")) {
          EXPECT_TRUE(!allowed.empty() && said["error"].value("message", "") == allowed) << said;
        }
        return said.value("result", nlohmann::json::object());
      }
      const std::string kind = said.value("method", "");
      if (kind == "Runtime.exceptionThrown" || kind == "Log.entryAdded" ||
          kind == "Runtime.consoleAPICalled") {
        complaints_.push_back(said["params"].dump());
      }
    }
  }
  // The next message, which ends with a zero.
  nlohmann::json Hear() {
    size_t end = 0;
    while ((end = heard_.find('\0')) == std::string::npos) {
      pollfd waiting{out_.get(), POLLIN, 0};
      std::array<char, 65536> bytes;
      if (poll(&waiting, 1, kPatienceMs) <= 0) {
        return {};
      }
      const ssize_t size = read(out_.get(), bytes.data(), bytes.size());
      if (size <= 0) {
        return {};
      }
      heard_.append(bytes.data(), static_cast<size_t>(size));
    }
    const nlohmann::json message = nlohmann::json::parse(heard_.substr(0, end), nullptr, false);
    heard_.erase(0, end + 1);
    return message;
  }
  static std::string Decoded(const std::string& base64) {
    const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string bytes;
    uint32_t bits = 0;
    int count = 0;
    for (const char digit : base64) {
      const size_t value = digits.find(digit);
      if (value == std::string::npos) {
        break;
      }
      bits = bits << 6 | static_cast<uint32_t>(value);
      count += 6;
      if (count >= 8) {
        count -= 8;
        bytes += static_cast<char>(bits >> count);
      }
    }
    return bytes;
  }

  std::string profile_ = "/tmp/ferry-test-browser-XXXXXX";
  pid_t pid_ = -1;
  UniqueFd in_;
  UniqueFd out_;
  std::string session_;
  std::string heard_;
  int asked_ = 0;
  std::vector<std::string> complaints_;
};

}  // namespace ferry::tests
