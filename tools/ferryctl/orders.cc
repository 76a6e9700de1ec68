#include "tools/ferryctl/orders.h"

#include <string>

#include "tools/display/view.h"
#include "tools/ferryctl/choice.h"
#include "tools/ferryctl/print.h"
#include "tools/ferryctl/trace_file.h"

namespace ferry::tools {
namespace {

using Stub = AdminClient::Stub;

constexpr uint32_t kWaitMs = 500;  // of one call: far from the time in which it must be answered

std::string Counted(uint64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// "3 ranks of 1 job".
template <typename Reply>
std::string WorkText(const Reply& reply) {
  return Counted(reply.ranks(), "rank") + " of " + Counted(reply.jobs(), "job");
}

std::string Name(const AdminClient& client) {
  return "ferryd (pid " + std::to_string(client.daemon().pid()) + ")";
}

}  // namespace

StatusOr<AdminClient> ConnectAsAdministrator(const CtlArguments& arguments) {
  const StatusOr<std::string> directory = ChooseOne(arguments);
  FERRY_RETURN_IF_ERROR(directory.status());
  StatusOr<AdminClient> client = AdminClient::Connect(*directory, kAnswerTimeoutMs);
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
  std::string said = WorkText(reply);
  while (waits && reply.jobs() != 0) {
    FERRY_RETURN_IF_ERROR(client->Call(&Stub::Drain, request, &reply));
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

}  // namespace ferry::tools
