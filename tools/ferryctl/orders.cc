#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "common/counted.h"
#include "common/unique_fd.h"
#include "tools/display/view.h"
#include "tools/ferryctl/choice.h"
#include "tools/ferryctl/commands.h"
#include "tools/ferryctl/job_names.h"
#include "tools/ferryctl/views.h"

namespace ferry::tools {
namespace {

using Stub = AdminClient::Stub;

constexpr uint32_t kWaitMs = 500;  // of one call: far from the time in which it must be answered

// "3 ranks of 1 job".
template <typename Reply>
std::string WorkText(const Reply& reply) {
  return Counted(reply.ranks(), "rank") + " of " + Counted(reply.jobs(), "job");
}

std::string Name(const AdminClient& client) {
  return "ferryd (pid " + std::to_string(client.daemon().pid()) + ")";
}

// ---- Traces ----

struct TraceCounts {
  uint64_t records = 0;
  uint64_t dropped = 0;  // older events, for which the daemon had no room
};

// A file that is changed when there is something to write, and removed if it was made for nothing.
class Output {
 public:
  static StatusOr<Output> Open(const std::string& path) {
    if (path.empty()) {
      return Output(path, UniqueFd(dup(STDOUT_FILENO)), false);
    }
    constexpr int kFlags = O_WRONLY | O_CREAT | O_CLOEXEC;
    UniqueFd fd(open(path.c_str(), kFlags | O_EXCL, 0644));
    const bool made = fd.valid();
    if (!made && errno == EEXIST) {
      fd.Reset(open(path.c_str(), kFlags, 0644));
    }
    if (!fd.valid()) {
      return StatusFromErrno(errno, "cannot write the trace to " + path);
    }
    return Output(path, std::move(fd), made);
  }

  Status Write(std::string_view text) {
    if (!std::exchange(begun_, true) && !path_.empty()) {
      (void)!ftruncate(fd_.get(), 0);  // a pipe has no length
    }
    while (!text.empty()) {
      const ssize_t count = write(fd_.get(), text.data(), text.size());
      if (count < 0 && errno != EINTR) {
        return StatusFromErrno(
            errno, "writing the trace to " + (path_.empty() ? "standard output" : path_));
      }
      text.remove_prefix(count < 0 ? 0 : static_cast<size_t>(count));
    }
    return {};
  }

  void Undo() const {
    if (made_ && !begun_) {
      unlink(path_.c_str());
    }
  }

 private:
  Output(std::string path, UniqueFd fd, bool made)
      : path_(std::move(path)), fd_(std::move(fd)), made_(made) {}

  std::string path_;
  UniqueFd fd_;
  bool made_;
  bool begun_ = false;
};

// Ends the trace and writes it to `path` (empty: standard output). The file is opened before the
// trace is ended: a path that cannot be written costs no trace. Blocks until all is written.
// Errors: kNotFound (no trace is running; then the file is as it was), those of the call and of
// writing.
StatusOr<TraceCounts> FetchTrace(const AdminClient& client, const std::string& path) {
  StatusOr<Output> output = Output::Open(path);
  FERRY_RETURN_IF_ERROR(output.status());
  grpc::ClientContext context;
  const auto stream = client.stub().StopTrace(&context, control::StopTraceRequest());
  TraceCounts counts;
  control::TracePiece piece;
  Status written;
  while (written.ok() && stream->Read(&piece)) {
    counts.records += piece.records();
    counts.dropped += piece.dropped();
    written = output->Write(piece.text());
  }
  if (!written.ok()) {
    context.TryCancel();
  }
  const Status ended = client.FromGrpc(stream->Finish());
  FERRY_RETURN_IF_ERROR(written);
  if (!ended.ok()) {
    output->Undo();
    return ended;
  }
  return counts;
}

// Tells the user what the file holds, and what to do with it.
std::string TraceText(const std::string& path, const TraceCounts& counts) {
  return path + ": " + std::to_string(counts.records) + " records" +
         (counts.dropped == 0 ? std::string()
                              : ", the last ones: " + std::to_string(counts.dropped) +
                                    " older ones were dropped (ferryd's option trace_events)") +
         "; open it in ui.perfetto.dev\n";
}

}  // namespace

StatusOr<AdminClient> ConnectAsAdministrator(const CtlArguments& arguments) {
  const StatusOr<ChosenPlace> place = ChooseOne(arguments);
  FERRY_RETURN_IF_ERROR(place.status());
  StatusOr<AdminClient> client =
      AdminClient::Connect(place->run_directory, kAnswerTimeoutMs, place->daemon_user);
  if (client.status().code() == ErrorCode::kPermissionDenied) {
    return Status(ErrorCode::kPermissionDenied,
                  client.status().message() + "; `ferryctl status` shows what is your own");
  }
  return client;
}

// Waits by short calls, so that a daemon that hangs meanwhile is noticed.
Status Drain(const CtlArguments& arguments) {
  const StatusOr<AdminClient> client = ConnectAsAdministrator(arguments);
  FERRY_RETURN_IF_ERROR(client.status());
  control::DrainRequest request;
  control::DrainReply reply;
  FERRY_RETURN_IF_ERROR(client->Call(&Stub::Drain, request, &reply));
  const bool waits = !arguments.no_wait && reply.jobs() != 0;
  if (!arguments.json) {
    Print(Name(*client) + " takes no new jobs; " +
          (reply.jobs() == 0 ? "none runs\n"
           : waits ? "waiting for " + WorkText(reply) + " (Ctrl-C ends the waiting, it goes on)\n"
                   : WorkText(reply) + " still here\n"));
  }
  request.set_wait_ms(kWaitMs);
  request.set_goes_on(true);
  std::string said = WorkText(reply);
  while (waits && reply.jobs() != 0) {
    FERRY_RETURN_IF_ERROR(client->Call(&Stub::Drain, request, &reply));
    if (reply.undrained()) {
      return {ErrorCode::kCancelled, Name(*client) + " takes new jobs again: `ferryctl undrain`"};
    }
    const std::string now = reply.jobs() == 0 ? "no job runs any more" : WorkText(reply);
    if (now != said && !arguments.json) {
      Print(now + "\n");
    }
    said = now;
  }
  if (arguments.json) {
    PrintJson({{"pid", client->daemon().pid()}, {"ranks", reply.ranks()}, {"jobs", reply.jobs()}});
  }
  return {};
}

Status Undrain(const CtlArguments& arguments) {
  const StatusOr<AdminClient> client = ConnectAsAdministrator(arguments);
  FERRY_RETURN_IF_ERROR(client.status());
  control::UndrainReply reply;
  FERRY_RETURN_IF_ERROR(client->Call(&Stub::Undrain, control::UndrainRequest(), &reply));
  arguments.json
      ? PrintJson({{"pid", client->daemon().pid()}, {"was_draining", reply.was_draining()}})
      : Print(Name(*client) +
              (reply.was_draining() ? " takes new jobs again\n" : " was not drained\n"));
  return {};
}

Status Shutdown(const CtlArguments& arguments) {
  const StatusOr<AdminClient> client = ConnectAsAdministrator(arguments);
  FERRY_RETURN_IF_ERROR(client.status());
  control::ShutdownRequest request;
  request.set_now(arguments.now);
  if (arguments.after_s.has_value()) {
    request.set_wait_ms(uint64_t{*arguments.after_s} * 1000);
  }
  control::ShutdownReply reply;
  FERRY_RETURN_IF_ERROR(client->Call(&Stub::Shutdown, request, &reply));
  if (arguments.json) {
    PrintJson({{"pid", client->daemon().pid()}, {"ranks", reply.ranks()}, {"jobs", reply.jobs()}});
  } else if (arguments.now || reply.jobs() == 0) {
    Print(Name(*client) + " stops now\n");
  } else {
    Print(Name(*client) + " takes no new jobs and stops once " + WorkText(reply) + " have ended" +
          (arguments.after_s ? ", at the latest in " + std::to_string(*arguments.after_s) + " s"
                             : " (`ferryctl shutdown --now` does not wait)") +
          "\n");
  }
  return {};
}

Status Trace(const CtlArguments& arguments) {
  if (arguments.action != "start" && arguments.action != "stop") {
    return TraceJob(arguments);
  }
  const StatusOr<AdminClient> client = ConnectAsAdministrator(arguments);
  FERRY_RETURN_IF_ERROR(client.status());
  if (arguments.action == "start") {
    control::StartTraceReply reply;
    FERRY_RETURN_IF_ERROR(client->Call(&Stub::StartTrace, control::StartTraceRequest(), &reply));
    arguments.json ? PrintJson({{"done", true}})
                   : Print("ferryd " + client->daemon().node().name() +
                           " records; `ferryctl trace stop --output FILE` ends it\n");
    return {};
  }
  const StatusOr<TraceCounts> counts = FetchTrace(*client, arguments.output);
  FERRY_RETURN_IF_ERROR(counts.status());
  if (arguments.output.empty()) {
    return {};
  }
  arguments.json ? PrintJson({{"file", arguments.output},
                              {"records", counts->records},
                              {"dropped_records", counts->dropped}})
                 : Print(TraceText(arguments.output, *counts));
  return {};
}

Status Faults(const CtlArguments& arguments) {
  const StatusOr<AdminClient> client = ConnectAsAdministrator(arguments);
  FERRY_RETURN_IF_ERROR(client.status());
  control::FaultsRequest request;
  request.set_release(arguments.release);
  control::FaultsReply reply;
  FERRY_RETURN_IF_ERROR(client->Call(&Stub::Faults, request, &reply));
  const View view = MakeView(reply, StandardOutput());
  arguments.json ? PrintJson(view.json) : Print(view.text);
  return {};
}

// Takes back the links of a job, by its name, or of one rank. A job's name may look like a rank's.
Status TakeLinks(const CtlArguments& arguments) {
  const std::string& name = arguments.rank.empty() ? arguments.job : arguments.rank;
  if (name.empty()) {
    return {ErrorCode::kInvalidArgument, "--take-back needs a job, or a rank of one: JOB.RANK"};
  }
  const StatusOr<AdminClient> client = ConnectAsAdministrator(arguments);
  FERRY_RETURN_IF_ERROR(client.status());
  control::TakeLinksRequest request;
  request.set_may_ask_again(arguments.for_now);
  const auto& jobs = client->daemon().jobs();
  const StatusOr<Meant> meant = ReadMeant({jobs.begin(), jobs.end()}, name, geteuid());
  FERRY_RETURN_IF_ERROR(meant.status());
  request.set_job_id(meant->job_id);
  if (meant->rank.has_value()) {
    request.set_rank(*meant->rank);
  }
  if (arguments.peer.has_value()) {
    request.set_peer(*arguments.peer);
  }
  control::TakeLinksReply reply;
  FERRY_RETURN_IF_ERROR(client->Call(&Stub::TakeLinks, request, &reply));
  arguments.json ? PrintJson({{"links", reply.links()}})
                 : Print(Name(*client) + " takes " + Counted(reply.links(), "link") +
                         " back; `ferryctl links` shows how far that is\n");
  return {};
}

}  // namespace ferry::tools
