// One node of a test of hostile programs: its daemon, as all users and its administrator see it.
//
// One thread, but for the thread that watches the daemon's memory.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "proto/control.grpc.pb.h"
#include "tests/daemon/ferryd_process.h"
#include "tests/daemon/test_rank.h"

namespace ferry::hostile {

struct NicCounts {
  uint64_t received = 0;  // messages, of one packet at least
  uint64_t failed = 0;    // packets that were dropped, and what was to be sent and failed
};

class Node {
 public:
  explicit Node(const std::string& name);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const std::string& run_directory() const { return run_directory_; }
  std::string address() const { return daemon_.ControlAddress(); }
  bool Lives() const;

  // A job of the caller's, made over control.sock as users do, of so many ranks on each of the
  // nodes with those addresses, of which this is `node`. It ends with `launcher`.
  bool CreateJob(const std::string& id, uint32_t node, uint32_t ranks_of_node,
                 const std::vector<std::string>& addresses, const daemon::TestLauncher& launcher);
  // All of the job's messages pass the daemons.
  void ForbidLinks(const std::string& id);
  NicCounts Nics();
  // Reads the metrics, as Prometheus does. False: it gets no whole answer within a long while.
  bool Scrape() const;
  // Its remaining holdings for jobs; empty if there are none.
  std::string Held();
  // The most memory that the daemon was seen to have, since this was asked for last, and what it
  // had to begin with.
  uint64_t TakeMostBytes() { return most_bytes_.exchange(0); }
  uint64_t first_bytes() const { return first_bytes_; }
  // Ends it; empty when it ended well.
  std::string Stop();
  std::string Errors() const { return daemon_.Errors(); }

 private:
  std::string CopyPrograms() const;
  size_t CountMemfds() const;
  uint16_t MetricsPort();
  uint64_t ResidentBytes() const;
  void WatchMemory();

  daemon::TemporaryDirectory directory_;
  const std::string run_directory_;
  daemon::FerrydProcess daemon_;
  std::unique_ptr<control::Admin::Stub> admin_;
  std::unique_ptr<control::Launcher::Stub> launcher_;
  uint16_t metrics_port_ = 0;
  size_t memfds_ = 0;
  uint64_t first_bytes_ = 0;
  std::atomic<uint64_t> most_bytes_{0};
  std::atomic<bool> is_watched_{true};
  std::thread watch_;
};

}  // namespace ferry::hostile
