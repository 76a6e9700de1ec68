// A child process whose standard streams lead to an agent or a relay: a launcher (ssh and the
// like), or, on the host itself, that program.
//
// Main thread; nothing blocks but HowEnded, for at most two seconds, and the destructor, for the
// end of a process that it has killed.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "tools/ferryrun/host_stream.h"

namespace ferry::tools {

class LauncherProcess final : public HostStream {
 public:
  // Starts `command`, its name first, which PATH leads to, with `variables` ("NAME=value") besides
  // this process's. It is killed when this process dies, however it dies.
  static StatusOr<std::unique_ptr<LauncherProcess>> Start(
      const std::vector<std::string>& command, const std::vector<std::string>& variables = {});
  // Starts an agent on this host itself. It shares this process's standard error, and when this
  // process dies, it sees that its input ends, and ends what it has started.
  static StatusOr<std::unique_ptr<LauncherProcess>> StartAgent();
  ~LauncherProcess() override;  // kills it and its process group

  // The command's name.
  const std::string& name() const { return name_; }
  pid_t pid() const override { return pid_; }

  void Write(std::string_view bytes) override;
  // Sends as much as there is room for.
  void Transmit();
  // How many bytes still wait to be sent.
  size_t waiting_bytes() const { return to_send_.size(); }
  // Drops what still waits to be sent, and ends the process's input.
  void CloseInput();

  // Receives at most `most` bytes of its output, for Take.
  void Receive(size_t most);
  // Returns at most that much of its standard error.
  std::string ReadErrors(size_t most);

  pollfd WordsInterest() const override { return {out_.get(), POLLIN, 0}; }
  pollfd RoomInterest() const override { return {to_send_.empty() ? -1 : in_.get(), POLLOUT, 0}; }
  void Advance() override;
  std::string Take() override { return std::exchange(received_, {}); }
  bool ended() const override { return !out_.valid() && received_.empty(); }
  // Returns true if the process itself has ended, too.
  bool HasExited() const;
  std::string HowEnded() override { return HowEnded(name_); }
  // As that, with another word than the command's name.
  std::string HowEnded(const std::string& name) const;
  bool IsLostWith(const HostStream&) const override { return false; }

 private:
  explicit LauncherProcess(std::string name) : name_(std::move(name)) {}
  static StatusOr<std::unique_ptr<LauncherProcess>> StartWith(
      const std::vector<std::string>& command, std::vector<std::string> variables,
      int parent_death_signal, bool has_own_errors);

  const std::string name_;
  pid_t pid_ = -1;
  UniqueFd in_;
  UniqueFd out_;
  std::string to_send_;
  std::string received_;
};

// Pure, any thread: returns `text` without the line ends at its end.
std::string Trimmed(std::string text);

}  // namespace ferry::tools
