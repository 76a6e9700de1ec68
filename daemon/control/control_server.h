// The control plane of ferryd, whole: run directory, attach socket, gRPC servers (for users, for
// administrators, for other daemons), links, their threads.
//
// Start and RunUntilStopped belong to one thread, the main one; the rest may be called by any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/status.h"
#include "config/options.h"
#include "daemon/plane/data_plane.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

class ControlServer {
 public:
  // `data_plane` must outlive it. `gpus` lists the GPUs for ferryctl, from any thread; it may be
  // null. Errors: kRunDirectory, kAlreadyExists (another daemon there, or the port in use),
  // kPermissionDenied (a control address that is not loopback, without TLS), kInvalidArgument (one
  // that is not ours), kConfiguration (the TLS files: see tls_files.h), kSystem.
  static StatusOr<std::unique_ptr<ControlServer>> Start(const config::Options& options,
                                                        DataPlane& data_plane,
                                                        std::function<control::GpusReply()> gpus);
  ~ControlServer();

  // SIGTERM and SIGINT end RunUntilStopped, a second one at once; SIGHUP calls `on_hangup`, on the
  // control loop, which may be empty. At most one ControlServer of a process may do so.
  void HandleSignals(std::function<void()> on_hangup);
  // Reads the TLS files anew, for connections made from now on, and logs how that went. A bad file
  // leaves those read before in use. Blocks for the files.
  void ReloadTls();
  // Calls `alive`, on the control loop, every `interval_ns` (not 0) in which both the control loop
  // and the progress thread have turned, with a line on what the daemon serves. Once only.
  void StartWatchdog(uint64_t interval_ns, std::function<void(const std::string& status)> alive);
  // Blocks until SIGTERM or Admin.Shutdown; takes no new jobs then, waits for the running ones,
  // tells ranks and peers, stops all threads. Calls `on_stop` (may be empty) once the end is near:
  // when a signal has come, or the wait is over. Call once.
  void RunUntilStopped(const std::function<void()>& on_stop = {});

  // News that the data plane finds out by itself (PlaneHooks); all return at once.
  // A rank breaks the rules: its session ends, the rank is told why.
  void EndSession(const std::string& job_id, uint32_t rank, const Status& why);
  // A job cannot go on here: it is aborted on all its nodes.
  void FailJob(const std::string& job_id, const Status& why);
  // It is known now whether a rank's private memory is reachable.
  void NoteReach(const std::string& job_id, uint32_t rank);
  // How the import of a region by a worker process has ended.
  void NoteImport(const std::string& job_id, uint32_t rank, uint32_t region, const Status& status);
  // A rank wants a direct link to a rank of another node.
  void WantLink(const std::string& job_id, uint32_t rank, uint32_t peer);
  // A rank has a message for a node of its job to which there is no way yet.
  void WantWay(const std::string& job_id, uint32_t node);
  // The data plane has lost its connection to a daemon (NodeContact::link).
  void LoseNode(uint64_t link, const Status& why);

  // host:port with the port really bound.
  const std::string& control_address() const;
  // The one that the options name, or that was made up (config::IsUnmade).
  const std::string& run_directory() const;

 private:
  struct Parts;
  explicit ControlServer(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace ferry::daemon
