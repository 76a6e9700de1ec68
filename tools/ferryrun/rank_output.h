// The output of a job's ranks, and of the launchers that log in to other hosts, on its way to
// ferryrun's own standard output and error.
//
// Main thread; nothing blocks. Ranks are numbers, in the order in which they were added.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "tools/ferryrun/output.h"
#include "tools/ferryrun/rank_files.h"
#include "tools/ferryrun/rank_terminal.h"

namespace ferry::tools {

class RankOutput {
 public:
  // `labelled`: "[2] " stands before each line; the numbers of `ranks` ranks get one width.
  // `files`: where the ranks' output goes instead, as it is; null: nowhere else. They must outlive
  // this object.
  RankOutput(uint32_t ranks, bool labelled, RankFiles* files);

  // Adds the next rank. Descriptors that are not valid: FeedRank brings what it writes.
  void AddRank(UniqueFd out, UniqueFd err);
  // Adds the standard error of the launcher of a host.
  void AddLauncher(const std::string& host, UniqueFd errors);
  // Takes what a rank of another host has written.
  void FeedRank(uint32_t rank, bool is_error, std::string_view bytes);

  // Appends the events to poll for, always as many; OnReady takes the first of them back.
  void AppendInterests(std::vector<pollfd>* fds) const;
  void OnReady(const pollfd* fds);
  // Sources should not be read while this holds.
  bool IsFull() const { return out_.IsFull() || err_.IsFull(); }
  // Returns true if nothing waits to be written.
  bool empty() const { return out_.empty() && err_.empty(); }
  // Writes as much as goes without waiting. Returns what cannot be written, once: standard output,
  // or a file.
  Status Flush();
  // The time at which to call OnTime; UINT64_MAX: never.
  uint64_t deadline_ns() const;
  void OnTime(uint64_t now_ns);
  // Takes what is left, when all ranks are gone. Only a process that left its group may still hold
  // a stream open; what it writes from now on is not waited for.
  void Drain();

  // Writes a line of ferryrun's own.
  void Say(const std::string& text) { err_lines_.Say("ferryrun: " + text + "\n"); }
  // Gives the terminals of the ranks that have one here another size.
  void ResizeTerminals(const TerminalSize& size) const;
  // As SameWords::IsNew, of what ferryrun says of a rank.
  bool IsNew(uint32_t rank, const std::string& words);

 private:
  struct Stream {
    UniqueFd fd;  // invalid: FeedRank brings it
    LineMixer* lines;
    size_t source;          // of `lines`
    int rank = -1;          // whose it is; below 0: a launcher's
    bool is_error = false;  // SameWords shows the library's messages once
  };

  std::string Label(uint32_t rank) const;
  void Read(Stream* stream);
  void Feed(Stream* stream, std::string_view bytes);
  void TellSameWords(uint64_t now_ns);

  const uint32_t ranks_;
  const bool labelled_;
  OutputSink out_;
  OutputSink err_;
  LineMixer out_lines_{&out_};
  LineMixer err_lines_{&err_};
  RankFiles* const files_;
  Status file_trouble_;            // to be told
  SameWords same_words_;           // of ranks, and of ferryrun about them
  std::vector<Stream> streams_;    // two for each rank: standard output and error
  std::vector<Stream> launchers_;  // standard errors
};

}  // namespace ferry::tools
