#include "daemon/admin/link_report.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "common/counted.h"
#include "daemon/jobs/job_link_books.h"
#include "daemon/session/rank_view.h"
#include "shm/counters.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;

const char* PathText(shm::PeerPath path) {
  switch (path) {
    case shm::PeerPath::kDaemon:
      return "daemon";
    case shm::PeerPath::kToLink:
      return "to link";
    case shm::PeerPath::kLink:
      return "link";
    case shm::PeerPath::kToDaemon:
      return "to daemon";
    case shm::PeerPath::kBroken:
      return "broken";
  }
  return "";
}

// Why a pair that has not asked yet, and has sent something, has no link.
std::string WhyNotYet(const JobRegistry& registry, const JobRecord& job, uint32_t rank,
                      uint32_t peer, const PathView& path) {
  if (!registry.link_books().allowed().ok()) {
    return "";  // that is said of the whole node
  }
  if (const Status status = registry.link_books().MayHaveLinks(job); !status.ok()) {
    return status.message();
  }
  if (job.links != nullptr) {
    if (const Status status = job.links->book.CheckBars(rank, peer); !status.ok()) {
      return status.message();
    }
  }
  return "after " + std::to_string(path.daemon_messages) + " of " +
         Counted(registry.link_books().min_messages(), "message");
}

void ReportPair(const JobRegistry& registry, const JobRecord& job, const Session& session,
                uint32_t peer, const LinkView* link, uint64_t now_ns, control::LinksReply* reply) {
  const PathView path = ReadPath(session, peer);
  if (link == nullptr && path.daemon_messages == 0) {
    return;
  }
  control::LinkStatus* status = reply->add_links();
  status->set_job_id(job.spec.id);
  status->set_rank(session.rank);
  status->set_peer(peer);
  status->set_node(job.spec.node_of_rank[peer]);
  status->set_out(PathText(path.out));
  status->set_in(PathText(path.in));
  status->set_daemon_messages(path.daemon_messages);
  status->set_daemon_bytes(path.daemon_bytes);
  status->set_state(LinkStateText(link == nullptr ? LinkState::kNone : link->state));
  if (link == nullptr) {
    status->set_why(WhyNotYet(registry, job, session.rank, peer, path));
    return;
  }
  status->set_for_ms((now_ns - std::min(now_ns, link->since_ns)) / kNsPerMs);
  status->set_why(link->returning ? "it is being taken back" : link->why);
}

void ReportTotals(const JobRecord& job, const Session& session, control::LinksReply* reply) {
  using shm::Statistic;
  const shm::Statistics statistics(session.layout()->counters);
  const uint64_t links = job.links == nullptr ? 0 : job.links->book.LinksOf(session.rank);
  if (links == 0 && statistics.Read(Statistic::kLinkMessagesSent) == 0 &&
      statistics.Read(Statistic::kLinkMessagesReceived) == 0) {
    return;
  }
  control::LinkTotals* totals = reply->add_totals();
  totals->set_job_id(job.spec.id);
  totals->set_rank(session.rank);
  totals->set_links(links);
  totals->set_messages_sent(statistics.Read(Statistic::kLinkMessagesSent));
  totals->set_messages_received(statistics.Read(Statistic::kLinkMessagesReceived));
  totals->set_bytes_sent(statistics.Read(Statistic::kLinkBytesSent));
  totals->set_bytes_received(statistics.Read(Statistic::kLinkBytesReceived));
  totals->set_errors(statistics.Read(Statistic::kLinkErrors));
}

void ReportJob(const JobRegistry& registry, const JobRecord& job, uint64_t now_ns,
               control::LinksReply* reply) {
  std::map<std::pair<uint32_t, uint32_t>, LinkView> links;
  if (job.links != nullptr) {
    for (LinkView& view : job.links->book.Views()) {
      links[{view.rank, view.peer}] = std::move(view);
    }
  }
  for (uint32_t rank = 0; rank < job.size(); ++rank) {
    const Session* session = job.ranks[rank].session.get();
    if (session == nullptr || !session->session_map.valid() || !session->inbox_map.valid()) {
      continue;
    }
    const std::vector<uint32_t> talked_to = PeersByDaemons(*session);
    std::set<uint32_t> peers(talked_to.begin(), talked_to.end());
    for (auto link = links.lower_bound({rank, 0}); link != links.end() && link->first.first == rank;
         ++link) {
      peers.insert(link->first.second);
    }
    for (const uint32_t peer : peers) {
      if (!job.IsLocal(peer)) {
        const auto found = links.find({rank, peer});
        ReportPair(registry, job, *session, peer, found == links.end() ? nullptr : &found->second,
                   now_ns, reply);
      }
    }
    ReportTotals(job, *session, reply);
  }
}

}  // namespace

void ReportLinks(const JobRegistry& registry, std::optional<uid_t> uid, uint64_t now_ns,
                 control::LinksReply* reply) {
  reply->set_refusal(registry.link_books().allowed().message());
  for (const auto& [id, job] : registry.jobs()) {
    if (!uid.has_value() || job->spec.owner == *uid) {
      ReportJob(registry, *job, now_ns, reply);
    }
  }
}

}  // namespace ferry::daemon
