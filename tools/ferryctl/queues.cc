#include "tools/ferryctl/queues.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace ferry::tools {
namespace {

using nlohmann::ordered_json;

// Which interface sends by which contexts: libferry has the first ones (client/api/message.h),
// communicators of MPI eight each from eight times their number on (mpi/comm/context_ids.h),
// OpenSHMEM the upper half (shmem/base/message_contexts.h).
constexpr uint32_t kContextsPerCommunicator = 8;
constexpr uint32_t kFirstOfOpenShmem = uint32_t{1} << 31;
constexpr uint32_t kOfFerryH = 0;
constexpr uint32_t kOfWorld = 1;  // communicators
constexpr uint32_t kOfSelf = 2;
constexpr size_t kMostListed = 32;  // of a queue

struct Queues {
  std::vector<const control::WaitReason*> sends;
  std::vector<const control::WaitReason*> receives;
  std::vector<const control::UnexpectedMessages*> unexpected;
};

std::string CommunicatorText(uint32_t number) {
  return number == kOfWorld  ? "MPI_COMM_WORLD"
         : number == kOfSelf ? "MPI_COMM_SELF"
                             : "communicator " + std::to_string(number);
}

// Whose messages have this context.
std::string OwnerText(uint32_t context) {
  if (context == kOfFerryH) {
    return "messages of ferry.h";
  }
  if (context < kContextsPerCommunicator) {
    return "Ferry's own messages";
  }
  if (context >= kFirstOfOpenShmem) {
    return "OpenSHMEM, context " + std::to_string(context);
  }
  const std::string communicator = CommunicatorText(context / kContextsPerCommunicator);
  switch (context % kContextsPerCommunicator) {
    case 0:
      return communicator;
    case 1:
      return "collectives of " + communicator;
    default:
      return "Ferry's own messages for " + communicator;
  }
}

std::string OrAny(int32_t number) { return number < 0 ? "any" : std::to_string(number); }

// The line about those of a queue that are not listed.
std::string FurtherText(size_t size, size_t listed) {
  return size <= listed ? ""
                        : "and " + std::to_string(size - listed) + " more (--all lists them)\n";
}

std::string OperationsText(const std::vector<const control::WaitReason*>& operations,
                           const char* title, const char* peer, size_t most,
                           const Terminal& terminal) {
  Table table({{peer, Align::kRight},
               {"TAG", Align::kRight},
               {"SIZE", Align::kRight},
               {"FOR", Align::kRight},
               {"STEP"}});
  const size_t listed = std::min(operations.size(), most);
  for (const control::WaitReason* const each : std::span(operations).first(listed)) {
    table.AddRow({OrAny(each->peer()), OrAny(each->tag()), BytesText(each->size_bytes()),
                  DurationText(each->age_ms()), each->step()});
  }
  return table.empty() ? ""
                       : std::string(title) + ":\n" + table.Text(terminal) +
                             FurtherText(operations.size(), listed);
}

std::string UnexpectedText(const std::vector<const control::UnexpectedMessages*>& messages,
                           size_t most, const Terminal& terminal) {
  Table table({{"FROM", Align::kRight},
               {"TAG", Align::kRight},
               {"SIZE", Align::kRight},
               {"COUNT", Align::kRight},
               {"DATA"}});
  const size_t listed = std::min(messages.size(), most);
  for (const control::UnexpectedMessages* const each : std::span(messages).first(listed)) {
    table.AddRow({std::to_string(each->source()), std::to_string(each->tag()),
                  BytesText(each->size_bytes()), std::to_string(each->count()),
                  each->announced() ? "with the sender" : "here"});
  }
  return table.empty() ? ""
                       : "unexpected messages:\n" + table.Text(terminal) +
                             FurtherText(messages.size(), listed);
}

ordered_json Json(const control::WaitReason& operation) {
  return {{"peer", operation.peer()},
          {"tag", operation.tag()},
          {"size_bytes", operation.size_bytes()},
          {"done_bytes", operation.done_bytes()},
          {"age_ms", operation.age_ms()},
          {"step", operation.step()}};
}

ordered_json Json(const control::UnexpectedMessages& messages) {
  return {{"source", messages.source()},
          {"tag", messages.tag()},
          {"size_bytes", messages.size_bytes()},
          {"count", messages.count()},
          {"announced", messages.announced()}};
}

template <typename Item>
ordered_json Json(const std::vector<const Item*>& items) {
  ordered_json all = ordered_json::array();
  for (const Item* const item : items) {
    all.push_back(Json(*item));
  }
  return all;
}

std::map<uint32_t, Queues> ByContext(const control::RankWait& rank) {
  std::map<uint32_t, Queues> all;
  for (const control::WaitReason& reason : rank.reasons()) {
    Queues& queues = all[reason.context()];
    (reason.operation() == "send" ? queues.sends : queues.receives).push_back(&reason);
  }
  for (const control::UnexpectedMessages& messages : rank.unexpected()) {
    all[messages.context()].unexpected.push_back(&messages);
  }
  return all;
}

}  // namespace

View QueuesView(const std::string& job_id, const std::string& label, const control::WhyReply& reply,
                bool all, const Terminal& terminal) {
  View view = {{{"job_id", job_id}}, ""};
  if (reply.ranks().empty()) {
    return view;
  }
  const control::RankWait& rank = reply.ranks(0);
  const size_t most = all ? SIZE_MAX : kMostListed;
  view.json["rank"] = rank.rank();
  view.json["state"] = rank.state();
  view.json["queues"] = ordered_json::array();
  view.text =
      "rank " + std::to_string(rank.rank()) + " of job " + label + " " + rank.detail() + "\n";
  for (const auto& [context, queues] : ByContext(rank)) {
    view.json["queues"].push_back({{"context", context},
                                   {"of", OwnerText(context)},
                                   {"sends", Json(queues.sends)},
                                   {"receives", Json(queues.receives)},
                                   {"unexpected", Json(queues.unexpected)}});
    view.text += "\n" + OwnerText(context) + "\n" +
                 OperationsText(queues.sends, "pending sends", "TO", most, terminal) +
                 OperationsText(queues.receives, "pending receives", "FROM", most, terminal) +
                 UnexpectedText(queues.unexpected, most, terminal);
  }
  const auto shown = static_cast<uint32_t>(rank.reasons_size());
  view.json["further"] = rank.unfinished() > shown ? rank.unfinished() - shown : 0;
  if (rank.unfinished() > shown) {
    view.text += "\nand " + std::to_string(rank.unfinished() - shown) + " more operations\n";
  }
  if (view.json["queues"].empty()) {
    view.text += rank.pid() == 0 ? "it is not on this daemon's node\n"
                                 : "it sends and receives nothing, and no message waits for it\n";
  }
  return view;
}

}  // namespace ferry::tools
