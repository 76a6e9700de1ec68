#include "tools/ferryrun/pmix_server.h"

#include <dlfcn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <future>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "client/bootstrap/pmix_binary.h"
#include "common/number_text.h"
#include "config/environment.h"

namespace ferry::tools {
namespace {

using client::FindInPmixFile;
using client::kPmixSuccess;
using client::PmixDataArray;
using client::PmixInfo;
using client::PmixProc;
using client::PmixType;

constexpr int kPmixError = -1;
constexpr char kServerSpace[] = "pmix.srv.nspace";
constexpr char kServerRank[] = "pmix.srv.rank";

// Names of variables by which clients find a server: of the releases of the library.
constexpr const char* kUriVariables[] = {"PMIX_SERVER_URI41", "PMIX_SERVER_URI4",
                                         "PMIX_SERVER_URI3", "PMIX_SERVER_URI21",
                                         "PMIX_SERVER_URI2"};

using OpDone = void(int status, void* data);
using Release = void(void* data);
using ModexDone = void(int status, const char* bytes, size_t size, void* data, Release* release,
                       void* to_release);
using ModexFound = void(int status, char* bytes, size_t size, void* data);

// pmix_server_module_t: what ferryrun does for the library. Null: it does not do that.
struct Module {
  int (*client_connected)(const PmixProc*, void*, OpDone*, void*);
  int (*client_finalized)(const PmixProc*, void*, OpDone*, void*);
  int (*abort)(const PmixProc*, void*, int, const char*, PmixProc*, size_t, OpDone*, void*);
  int (*fence)(const PmixProc*, size_t, const PmixInfo*, size_t, char*, size_t, ModexDone*, void*);
  int (*direct_modex)(const PmixProc*, const PmixInfo*, size_t, ModexDone*, void*);
  void* publish_to_fabric[22];
  void* client_connected2;
  void* of_later_releases[16];
};

// Values for the library, which keep what they point to.
class Infos {
 public:
  void Text(const char* key, const std::string& text) {
    texts_.push_back(text);
    Add(key, PmixType::kString).string = texts_.back().c_str();
  }
  void Number(const char* key, uint32_t number) { Add(key, PmixType::kUint32).number = number; }
  void Rank(const char* key, uint32_t rank) { Add(key, PmixType::kProcRank).number = rank; }
  void Flag(const char* key) { Add(key, PmixType::kBool).flag = true; }
  void Small(const char* key, uint32_t number) {
    Add(key, PmixType::kUint16).small_number = static_cast<uint16_t>(number);
  }
  void Array(const char* key, Infos items) {
    inner_.push_back(std::move(items));
    arrays_.push_back({PmixType::kInfo, inner_.back().size(), inner_.back().data()});
    Add(key, PmixType::kDataArray).array = &arrays_.back();
  }
  PmixInfo* data() { return infos_.data(); }
  size_t size() const { return infos_.size(); }

 private:
  decltype(client::PmixValue::data)& Add(const char* key, PmixType type) {
    PmixInfo& info = infos_.emplace_back();
    std::strncpy(info.key, key, sizeof(info.key) - 1);
    info.value.type = type;
    return info.value.data;
  }

  std::vector<PmixInfo> infos_;
  std::deque<std::string> texts_;
  std::deque<Infos> inner_;
  std::deque<PmixDataArray> arrays_;
};

// The text of a list such as "0,1,5".
std::string Joined(const std::vector<uint32_t>& ranks) {
  std::string text;
  for (const uint32_t rank : ranks) {
    text += (text.empty() ? "" : ",") + std::to_string(rank);
  }
  return text;
}

// Some releases wait for no answer to some calls.
void Finish(OpDone* done, void* data) {
  if (done != nullptr) {
    done(kPmixSuccess, data);
  }
}

void FreeString(void* string) { delete static_cast<std::string*>(string); }

// A directory for files of the ranks' library, which goes with the job. None: it uses its own.
std::optional<PrivateDirectory> MakeFolder(const std::vector<uint32_t>& ranks) {
  const char* const* environment = config::ProcessEnvironment();
  const auto runtime = config::FindVariable(environment, "XDG_RUNTIME_DIR");
  const auto temporary = config::FindVariable(environment, "TMPDIR");
  StatusOr<PrivateDirectory> folder = PrivateDirectory::Create(
      PrivateBase(std::string(runtime.value_or("")), std::string(temporary.value_or(""))));
  std::error_code error;
  for (const uint32_t rank : ranks) {
    if (folder.ok()) {
      std::filesystem::create_directory(folder->path() + "/" + std::to_string(rank), error);
    }
  }
  return folder.ok() && !error ? std::optional(std::move(*folder)) : std::nullopt;
}

std::string ServerSpaceOf(const ServedJob& job) { return "ferryrun-" + job.name; }

}  // namespace

struct PmixServer::Library {
  // An answer that libpmix waits for.
  struct Waiting {
    ModexDone* done;
    void* data;

    void Answer(const std::string& bytes) const {
      auto* const copy = new std::string(bytes);
      done(kPmixSuccess, copy->data(), copy->size(), data, FreeString, copy);
    }
    void Refuse() const { done(kPmixError, nullptr, 0, data, nullptr, nullptr); }
  };

  Status Open();
  // Queues a call for the main thread. From libpmix's thread.
  void Post(std::function<void()> call) {
    {
      const std::lock_guard lock(mutex);
      calls.push_back(std::move(call));
    }
    const uint64_t one = 1;
    (void)!write(wake.get(), &one, sizeof(one));
  }

  static int OnConnected(const PmixProc* proc, void* object, OpDone* done, void* data);
  static int OnFinalized(const PmixProc* proc, void* object, OpDone* done, void* data);
  static int OnAbort(const PmixProc* proc, void* object, int status, const char* text,
                     PmixProc* procs, size_t count, OpDone* done, void* data);
  static int OnFence(const PmixProc* procs, size_t count, const PmixInfo* infos, size_t info_count,
                     char* bytes, size_t size, ModexDone* done, void* data);
  static int OnDirectModex(const PmixProc* proc, const PmixInfo* infos, size_t count,
                           ModexDone* done, void* data);
  static void OnModexFound(int status, char* bytes, size_t size, void* data);

  PmixProc Of(uint32_t rank) const {
    PmixProc proc{};
    std::strncpy(proc.name_space, name_space.c_str(), sizeof(proc.name_space) - 1);
    proc.rank = rank;
    return proc;
  }
  // Waits for a call that libpmix answers from its own thread.
  template <typename Call>
  static int Await(Call call) {
    std::promise<int> answer;
    const int status =
        call([](int found, void* data) { static_cast<std::promise<int>*>(data)->set_value(found); },
             &answer);
    return status == kPmixSuccess   ? answer.get_future().get()
           : status == kDoneAlready ? kPmixSuccess
                                    : status;
  }

  static constexpr int kDoneAlready = -157;  // PMIX_OPERATION_SUCCEEDED: no answer comes
  static Library* running;                   // that libpmix calls; null: none

  int (*init)(Module*, PmixInfo*, size_t) = nullptr;
  int (*finalize)() = nullptr;
  int (*register_job)(const char*, int, PmixInfo*, size_t, OpDone*, void*) = nullptr;
  int (*register_client)(const PmixProc*, uid_t, gid_t, void*, OpDone*, void*) = nullptr;
  int (*setup_fork)(const PmixProc*, char***) = nullptr;
  int (*request_modex)(const PmixProc*, ModexFound*, void*) = nullptr;
  int (*generate_nodes)(const char*, char**) = nullptr;
  int (*generate_ranks)(const char*, char**) = nullptr;
  const char* (*error_string)(int) = nullptr;

  std::string name_space;
  std::vector<ExchangeMessage>* words = nullptr;
  Module module{};
  uint16_t port = 0;
  UniqueFd wake{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::mutex mutex;
  std::vector<std::function<void()>> calls;
  // On the main thread.
  std::map<std::string, Waiting> fences;
  std::map<std::string, uint32_t> fences_of_ranks;  // how many there have been of these ranks
  std::map<std::string, Waiting> questions;
  uint64_t next_question = 0;
};

PmixServer::Library* PmixServer::Library::running = nullptr;

Status PmixServer::Library::Open() {
  void* const file = client::OpenPmixFile();
  if (file == nullptr) {
    return {ErrorCode::kNotFound, std::string(dlerror()) + "; install libpmix2 on this host"};
  }
  FERRY_RETURN_IF_ERROR(FindInPmixFile(file, "PMIx_server_init", &init));
  FERRY_RETURN_IF_ERROR(FindInPmixFile(file, "PMIx_server_finalize", &finalize));
  FERRY_RETURN_IF_ERROR(FindInPmixFile(file, "PMIx_server_register_nspace", &register_job));
  FERRY_RETURN_IF_ERROR(FindInPmixFile(file, "PMIx_server_register_client", &register_client));
  FERRY_RETURN_IF_ERROR(FindInPmixFile(file, "PMIx_server_setup_fork", &setup_fork));
  FERRY_RETURN_IF_ERROR(FindInPmixFile(file, "PMIx_server_dmodex_request", &request_modex));
  FERRY_RETURN_IF_ERROR(FindInPmixFile(file, "PMIx_generate_regex", &generate_nodes));
  FERRY_RETURN_IF_ERROR(FindInPmixFile(file, "PMIx_generate_ppn", &generate_ranks));
  return FindInPmixFile(file, "PMIx_Error_string", &error_string);
}

// ---- Calls of libpmix, on its thread ------------------------------------------------------------

int PmixServer::Library::OnConnected(const PmixProc* proc, void* /*object*/, OpDone* done,
                                     void* data) {
  running->Post([own = running, rank = proc->rank, done, data] {
    own->words->push_back({.kind = ExchangeMessage::Kind::kMet, .rank = rank, .why = "PMIx"});
    Finish(done, data);
  });
  return kPmixSuccess;
}

int PmixServer::Library::OnFinalized(const PmixProc* proc, void* /*object*/, OpDone* done,
                                     void* data) {
  running->Post([own = running, rank = proc->rank, done, data] {
    own->words->push_back({.kind = ExchangeMessage::Kind::kLeft, .rank = rank});
    Finish(done, data);
  });
  return kPmixSuccess;
}

int PmixServer::Library::OnAbort(const PmixProc* proc, void* /*object*/, int status,
                                 const char* /*text*/, PmixProc* /*procs*/, size_t /*count*/,
                                 OpDone* done, void* data) {
  running->Post([own = running, rank = proc->rank, status, done, data] {
    own->words->push_back(
        {.kind = ExchangeMessage::Kind::kAborts, .rank = rank, .data = std::to_string(status)});
    Finish(done, data);
  });
  return kPmixSuccess;
}

int PmixServer::Library::OnFence(const PmixProc* procs, size_t count, const PmixInfo* /*infos*/,
                                 size_t /*info_count*/, char* bytes, size_t size, ModexDone* done,
                                 void* data) {
  std::vector<uint32_t> ranks;
  for (size_t i = 0; i < count && procs[i].rank != client::kPmixWildcard; ++i) {
    ranks.push_back(procs[i].rank);
  }
  if (ranks.size() < count) {
    ranks.clear();  // all
  }
  std::sort(ranks.begin(), ranks.end());
  std::string put(bytes == nullptr ? "" : bytes, bytes == nullptr ? 0 : size);
  running->Post([own = running, ranks = std::move(ranks), put = std::move(put), done, data] {
    ExchangeMessage part{.kind = ExchangeMessage::Kind::kPart, .ranks = ranks};
    const std::string group = "pmix " + Joined(ranks);
    part.fence = group + " " + std::to_string(own->fences_of_ranks[group]++);
    if (put.size() > kMostExchangeBytes) {
      own->words->push_back({.kind = ExchangeMessage::Kind::kFault,
                             .why = "the ranks here have put " + std::to_string(put.size()) +
                                    " bytes before one fence of PMIx; ferryrun passes on " +
                                    std::to_string(kMostExchangeBytes) + " at most"});
      return done(kPmixError, nullptr, 0, data, nullptr, nullptr);
    }
    part.data = put;
    own->fences[part.fence] = {done, data};
    own->words->push_back(std::move(part));
  });
  return kPmixSuccess;
}

int PmixServer::Library::OnDirectModex(const PmixProc* proc, const PmixInfo* /*infos*/,
                                       size_t /*count*/, ModexDone* done, void* data) {
  running->Post([own = running, rank = proc->rank, done, data] {
    const std::string question = std::to_string(own->next_question++);
    own->questions[question] = {done, data};
    own->words->push_back({.kind = ExchangeMessage::Kind::kAsk, .fence = question, .rank = rank});
  });
  return kPmixSuccess;
}

// `data`: the question, which goes back as the answer.
void PmixServer::Library::OnModexFound(int status, char* bytes, size_t size, void* data) {
  std::unique_ptr<ExchangeMessage> answer(static_cast<ExchangeMessage*>(data));
  answer->kind = ExchangeMessage::Kind::kAnswer;
  if (status == kPmixSuccess && size <= kMostExchangeBytes) {
    answer->data.assign(bytes == nullptr ? "" : bytes, bytes == nullptr ? 0 : size);
  } else {
    answer->why = "its server does not tell";
  }
  running->Post([own = running, answer = *answer] { own->words->push_back(answer); });
}

// ---- The server, on the main thread -------------------------------------------------------------

uint16_t PortOfPmixUri(const std::string& uri) {
  constexpr std::string_view kPlace = "tcp4://127.0.0.1:";
  const size_t at = uri.find(kPlace);
  if (at == uri.npos) {
    return 0;
  }
  const std::string_view rest = std::string_view(uri).substr(at + kPlace.size());
  return NumberIn<uint16_t>(rest.substr(0, rest.find_first_not_of("0123456789"))).value_or(0);
}

PmixServer::PmixServer(const ServedJob& job, EventSet* events, std::vector<ExchangeMessage>* words)
    : job_(job), events_(events), words_(words), door_(events, [this] { return Start(); }) {}

PmixServer::~PmixServer() {
  door_.Close();  // libpmix waits for the first words of each connection, even to end
  if (library_ != nullptr) {
    events_->Remove(library_->wake.get());
    library_->finalize();
    Library::running = nullptr;
  }
}

void PmixServer::Open(uint32_t rank, uint32_t app, uint32_t universe_size,
                      std::vector<std::string>* variables) {
  if (app_of_rank_.empty()) {
    is_open_ = door_.Open().ok();
  }
  app_of_rank_[rank] = app;
  universe_size_ = universe_size;
  if (!is_open_) {
    return;
  }
  const std::string uri =
      ServerSpaceOf(job_) + ".0;tcp4://127.0.0.1:" + std::to_string(door_.port());
  for (const char* name : kUriVariables) {
    variables->push_back(std::string(name) + "=" + uri);
  }
  variables->push_back("PMIX_NAMESPACE=" + job_.name_space);
  variables->push_back("PMIX_RANK=" + std::to_string(rank));
  // Open MPI 4 takes a process for a singleton, before it looks for a server, unless there is a
  // word of a launcher that it knows. It does not use the address.
  variables->push_back("OMPI_MCA_orte_local_daemon_uri=" + uri);
  // Modules that each release of the library has, whichever it would choose.
  variables->push_back("PMIX_SECURITY_MODE=native");
  variables->push_back("PMIX_BFROP_BUFFER_TYPE=PMIX_BFROP_BUFFER_NON_DESC");
  variables->push_back(std::string("PMIX_GDS_MODULE=") + kPmixStore);
}

Status PmixServer::Explain(int status, const std::string& what) const {
  if (status == kPmixSuccess) {
    return {};
  }
  const char* const text = library_->error_string(status);
  return {ErrorCode::kSystem,
          what + ": " + (text != nullptr ? text : "error " + std::to_string(status))};
}

StatusOr<uint16_t> PmixServer::Start() {
  if (library_ != nullptr) {
    return library_->port;
  }
  StatusOr<uint16_t> port = StartLibrary();
  if (!port.ok()) {
    words_->push_back(
        {.kind = ExchangeMessage::Kind::kFault,
         .why = "a rank asks for a PMIx server, as programs of Open MPI do, and there is none: " +
                port.status().message()});
  }
  return port;
}

StatusOr<uint16_t> PmixServer::StartLibrary() {
  auto library = std::make_unique<Library>();
  FERRY_RETURN_IF_ERROR(library->Open());
  library->name_space = job_.name_space;
  library->words = words_;
  library->module.client_connected = Library::OnConnected;
  library->module.client_finalized = Library::OnFinalized;
  library->module.abort = Library::OnAbort;
  library->module.fence = Library::OnFence;
  library->module.direct_modex = Library::OnDirectModex;
  library_ = std::move(library);
  Library::running = library_.get();
  Infos infos;
  infos.Text(kServerSpace, ServerSpaceOf(job_));
  infos.Rank(kServerRank, 0);
  const Status ready =
      Explain(library_->init(&library_->module, infos.data(), infos.size()), "PMIx_server_init");
  if (!ready.ok()) {
    Library::running = nullptr;
    library_.reset();
    return ready;
  }
  events_->Add(library_->wake.get(), EPOLLIN, [this](uint32_t) { OnCalls(); });
  FERRY_RETURN_IF_ERROR(Register());
  const PmixProc first = library_->Of(app_of_rank_.begin()->first);
  char** variables = nullptr;
  FERRY_RETURN_IF_ERROR(
      Explain(library_->setup_fork(&first, &variables), "PMIx_server_setup_fork"));
  for (char** entry = variables; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::string_view(*entry).starts_with("PMIX_SERVER_URI")) {
      library_->port = std::max(library_->port, PortOfPmixUri(*entry));
    }
    std::free(*entry);
  }
  std::free(variables);
  if (library_->port == 0) {
    return Status(ErrorCode::kSystem, "libpmix's server does not listen on 127.0.0.1");
  }
  return library_->port;
}

// Tells the library of the job, and of its ranks on this machine.
Status PmixServer::Register() {
  // Several nodes on this machine have one server, so they are one node to it.
  const auto is_here = [this](uint32_t node) {
    return std::find(job_.nodes_here.begin(), job_.nodes_here.end(), node) != job_.nodes_here.end();
  };
  std::map<uint32_t, std::vector<uint32_t>> ranks_of_node;
  for (uint32_t rank = 0; rank < job_.size(); ++rank) {
    const uint32_t node = job_.node_of_rank[rank];
    ranks_of_node[is_here(node) ? job_.nodes_here.front() : node].push_back(rank);
  }
  std::string nodes;
  std::string ranks;
  for (const auto& [node, its_ranks] : ranks_of_node) {
    nodes += (nodes.empty() ? "" : ",") + job_.hosts[node];
    ranks += (ranks.empty() ? "" : ";") + Joined(its_ranks);
  }
  const auto compact = [this](const auto generate, const std::string& text) {
    char* made = nullptr;
    std::string result = "raw:" + text;  // a form that all readers know; the others are shorter
    if (generate(text.c_str(), &made) == kPmixSuccess && made != nullptr) {
      result = std::string_view(made).starts_with("blob") ? result : made;
    }
    std::free(made);
    return result;
  };
  const std::vector<uint32_t>& here = ranks_of_node[job_.nodes_here.front()];
  const auto local_size = static_cast<uint32_t>(here.size());
  Infos infos;
  infos.Text("pmix.jobid", job_.name);
  infos.Number(client::kPmixJobSize, job_.size());
  infos.Number(client::kPmixUniverseSize, universe_size_);
  infos.Number("pmix.max.size", universe_size_);
  infos.Number("pmix.local.size", local_size);
  infos.Number("pmix.node.size", local_size);
  infos.Number("pmix.num.nodes", static_cast<uint32_t>(ranks_of_node.size()));
  infos.Rank("pmix.offset", 0);
  infos.Rank("pmix.lldr", here.front());
  infos.Text("pmix.nmap", compact(library_->generate_nodes, nodes));
  infos.Text("pmix.pmap", compact(library_->generate_ranks, ranks));
  infos.Text(client::kPmixLocalPeers, Joined(here));
  if (std::optional<PrivateDirectory> folder = MakeFolder(here)) {
    folder_.emplace(std::move(*folder));
    infos.Text("pmix.tmpdir", folder_->path());
    infos.Text("pmix.nsdir", folder_->path());
    infos.Flag("pmix.tdir.rmclean");
  }
  uint32_t index = 0;
  for (const uint32_t rank : here) {
    Infos own;
    own.Rank("pmix.rank", rank);
    own.Number(client::kPmixAppNumber, app_of_rank_[rank]);
    own.Rank("pmix.grank", rank);
    own.Small("pmix.lrank", index);
    own.Small("pmix.nrank", index++);
    own.Number("pmix.nodeid", job_.nodes_here.front());
    own.Text("pmix.hname", job_.hosts[job_.nodes_here.front()]);
    if (folder_) {
      own.Text("pmix.pdir", folder_->path() + "/" + std::to_string(rank));
    }
    infos.Array("pmix.pdata", std::move(own));
  }
  FERRY_RETURN_IF_ERROR(Explain(Library::Await([&](OpDone* done, void* data) {
                                  return library_->register_job(
                                      job_.name_space.c_str(), static_cast<int>(local_size),
                                      infos.data(), infos.size(), done, data);
                                }),
                                "PMIx_server_register_nspace"));
  for (const uint32_t rank : here) {
    const PmixProc proc = library_->Of(rank);
    FERRY_RETURN_IF_ERROR(Explain(Library::Await([&](OpDone* done, void* data) {
                                    return library_->register_client(&proc, geteuid(), getegid(),
                                                                     nullptr, done, data);
                                  }),
                                  "PMIx_server_register_client"));
  }
  return {};
}

void PmixServer::OnCalls() {
  uint64_t ignored = 0;
  (void)!read(library_->wake.get(), &ignored, sizeof(ignored));
  std::vector<std::function<void()>> calls;
  {
    const std::lock_guard lock(library_->mutex);
    calls.swap(library_->calls);
  }
  for (const std::function<void()>& call : calls) {
    call();
  }
}

void PmixServer::Take(const ExchangeMessage& message) {
  if (message.kind == ExchangeMessage::Kind::kAsk) {
    auto question = std::make_unique<ExchangeMessage>(message);
    if (Start().ok()) {
      const PmixProc proc = library_->Of(message.rank);
      if (library_->request_modex(&proc, Library::OnModexFound, question.get()) == kPmixSuccess) {
        question.release();  // OnModexFound frees it
        return;
      }
    }
    question->kind = ExchangeMessage::Kind::kAnswer;
    question->why = "its server does not tell";
    words_->push_back(std::move(*question));
    return;
  }
  if (library_ == nullptr) {
    return;
  }
  const bool is_answer = message.kind == ExchangeMessage::Kind::kAnswer;
  auto& all = is_answer ? library_->questions : library_->fences;
  const auto found = all.find(message.fence);
  if (found == all.end()) {
    return;
  }
  const Library::Waiting waiting = found->second;
  all.erase(found);
  if (message.why.empty()) {
    waiting.Answer(message.data);
    return;
  }
  if (!is_answer) {
    words_->push_back(
        {.kind = ExchangeMessage::Kind::kFault, .why = "a fence of PMIx waits for " + message.why});
  }
  waiting.Refuse();
}

}  // namespace ferry::tools
