// The classes of communicators, windows and files of Open MPI's bindings for C++: see bindings.h.
#pragma once

#include "mpi/foreign/openmpi/bindings.h"

// NOLINTBEGIN(readability-identifier-naming): the names of the standard.
#pragma GCC visibility push(default)
namespace MPI {

// ---- Communicators ------------------------------------------------------------------------------

class Comm_Null {
  FERRY_CLASS(Comm_Null, MPI_Comm, MPI_COMM_NULL)
  Comm_Null() = default;
};

class Comm : public Comm_Null {
 public:
  using Errhandler_function = void(Comm&, int*, ...);
  using Copy_attr_function = int(const Comm&, int, void*, void*, void*, bool&);
  using Delete_attr_function = int(Comm&, int, void*, void*);

  Comm();
  Comm(const Comm_Null& other);  // NOLINT(google-explicit-constructor): as programs have it
  explicit Comm(MPI_Comm h) : Comm_Null(h) {}
  Comm(const Comm&) = default;
  Comm& operator=(const Comm&) = default;

  virtual void Send(const void* buf, int count, const Datatype& type, int dest, int tag) const {
    MPI_Send(buf, count, type.handle(), dest, tag, handle_);
  }
  virtual void Recv(void* buf, int count, const Datatype& type, int source, int tag,
                    Status& status) const {
    MPI_Recv(buf, count, type.handle(), source, tag, handle_, status.get());
  }
  virtual void Recv(void* buf, int count, const Datatype& type, int source, int tag) const {
    MPI_Recv(buf, count, type.handle(), source, tag, handle_, MPI_STATUS_IGNORE);
  }
  virtual void Bsend(const void* buf, int count, const Datatype& type, int dest, int tag) const {
    MPI_Bsend(buf, count, type.handle(), dest, tag, handle_);
  }
  virtual void Ssend(const void* buf, int count, const Datatype& type, int dest, int tag) const {
    MPI_Ssend(buf, count, type.handle(), dest, tag, handle_);
  }
  virtual void Rsend(const void* buf, int count, const Datatype& type, int dest, int tag) const {
    MPI_Rsend(buf, count, type.handle(), dest, tag, handle_);
  }
#define FERRY_STARTED(Result, name, Buffer, function)                                          \
  virtual Result name(Buffer* buf, int count, const Datatype& type, int peer, int tag) const { \
    MPI_Request request = MPI_REQUEST_NULL;                                                    \
    function(buf, count, type.handle(), peer, tag, handle_, &request);                         \
    return Result(request);                                                                    \
  }
  FERRY_STARTED(Request, Isend, const void, MPI_Isend)
  FERRY_STARTED(Request, Ibsend, const void, MPI_Ibsend)
  FERRY_STARTED(Request, Issend, const void, MPI_Issend)
  FERRY_STARTED(Request, Irsend, const void, MPI_Irsend)
  FERRY_STARTED(Request, Irecv, void, MPI_Irecv)
  virtual bool Iprobe(int source, int tag, Status& status) const {
    return Probed(source, tag, status.get());
  }
  virtual bool Iprobe(int source, int tag) const { return Probed(source, tag, MPI_STATUS_IGNORE); }
  virtual void Probe(int source, int tag, Status& status) const {
    MPI_Probe(source, tag, handle_, status.get());
  }
  virtual void Probe(int source, int tag) const {
    MPI_Probe(source, tag, handle_, MPI_STATUS_IGNORE);
  }
  FERRY_STARTED(Prequest, Send_init, const void, MPI_Send_init)
  FERRY_STARTED(Prequest, Bsend_init, const void, MPI_Bsend_init)
  FERRY_STARTED(Prequest, Ssend_init, const void, MPI_Ssend_init)
  FERRY_STARTED(Prequest, Rsend_init, const void, MPI_Rsend_init)
  FERRY_STARTED(Prequest, Recv_init, void, MPI_Recv_init)
#undef FERRY_STARTED
  virtual void Sendrecv(const void* sendbuf, int sendcount, const Datatype& sendtype, int dest,
                        int sendtag, void* recvbuf, int recvcount, const Datatype& recvtype,
                        int source, int recvtag, Status& status) const {
    MPI_Sendrecv(sendbuf, sendcount, sendtype.handle(), dest, sendtag, recvbuf, recvcount,
                 recvtype.handle(), source, recvtag, handle_, status.get());
  }
  virtual void Sendrecv(const void* sendbuf, int sendcount, const Datatype& sendtype, int dest,
                        int sendtag, void* recvbuf, int recvcount, const Datatype& recvtype,
                        int source, int recvtag) const {
    MPI_Sendrecv(sendbuf, sendcount, sendtype.handle(), dest, sendtag, recvbuf, recvcount,
                 recvtype.handle(), source, recvtag, handle_, MPI_STATUS_IGNORE);
  }
  virtual void Sendrecv_replace(void* buf, int count, const Datatype& type, int dest, int sendtag,
                                int source, int recvtag, Status& status) const {
    MPI_Sendrecv_replace(buf, count, type.handle(), dest, sendtag, source, recvtag, handle_,
                         status.get());
  }
  virtual void Sendrecv_replace(void* buf, int count, const Datatype& type, int dest, int sendtag,
                                int source, int recvtag) const {
    MPI_Sendrecv_replace(buf, count, type.handle(), dest, sendtag, source, recvtag, handle_,
                         MPI_STATUS_IGNORE);
  }
  virtual Group Get_group() const {
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm_group(handle_, &group);
    return Group(group);
  }
  virtual int Get_size() const { return Number(MPI_Comm_size); }
  virtual int Get_rank() const { return Number(MPI_Comm_rank); }
  virtual Comm& Clone() const = 0;
  virtual void Free() { MPI_Comm_free(&handle_); }
  virtual bool Is_inter() const { return Number(MPI_Comm_test_inter) != 0; }
  virtual void Barrier() const { MPI_Barrier(handle_); }
  virtual void Bcast(void* buffer, int count, const Datatype& type, int root) const {
    MPI_Bcast(buffer, count, type.handle(), root, handle_);
  }
  virtual void Gather(const void* sendbuf, int sendcount, const Datatype& sendtype, void* recvbuf,
                      int recvcount, const Datatype& recvtype, int root) const {
    MPI_Gather(sendbuf, sendcount, sendtype.handle(), recvbuf, recvcount, recvtype.handle(), root,
               handle_);
  }
  virtual void Gatherv(const void* sendbuf, int sendcount, const Datatype& sendtype, void* recvbuf,
                       const int recvcounts[], const int displs[], const Datatype& recvtype,
                       int root) const {
    MPI_Gatherv(sendbuf, sendcount, sendtype.handle(), recvbuf, recvcounts, displs,
                recvtype.handle(), root, handle_);
  }
  virtual void Scatter(const void* sendbuf, int sendcount, const Datatype& sendtype, void* recvbuf,
                       int recvcount, const Datatype& recvtype, int root) const {
    MPI_Scatter(sendbuf, sendcount, sendtype.handle(), recvbuf, recvcount, recvtype.handle(), root,
                handle_);
  }
  virtual void Scatterv(const void* sendbuf, const int sendcounts[], const int displs[],
                        const Datatype& sendtype, void* recvbuf, int recvcount,
                        const Datatype& recvtype, int root) const {
    MPI_Scatterv(sendbuf, sendcounts, displs, sendtype.handle(), recvbuf, recvcount,
                 recvtype.handle(), root, handle_);
  }
  virtual void Allgather(const void* sendbuf, int sendcount, const Datatype& sendtype,
                         void* recvbuf, int recvcount, const Datatype& recvtype) const {
    MPI_Allgather(sendbuf, sendcount, sendtype.handle(), recvbuf, recvcount, recvtype.handle(),
                  handle_);
  }
  virtual void Allgatherv(const void* sendbuf, int sendcount, const Datatype& sendtype,
                          void* recvbuf, const int recvcounts[], const int displs[],
                          const Datatype& recvtype) const {
    MPI_Allgatherv(sendbuf, sendcount, sendtype.handle(), recvbuf, recvcounts, displs,
                   recvtype.handle(), handle_);
  }
  virtual void Alltoall(const void* sendbuf, int sendcount, const Datatype& sendtype, void* recvbuf,
                        int recvcount, const Datatype& recvtype) const {
    MPI_Alltoall(sendbuf, sendcount, sendtype.handle(), recvbuf, recvcount, recvtype.handle(),
                 handle_);
  }
  virtual void Alltoallv(const void* sendbuf, const int sendcounts[], const int sdispls[],
                         const Datatype& sendtype, void* recvbuf, const int recvcounts[],
                         const int rdispls[], const Datatype& recvtype) const {
    MPI_Alltoallv(sendbuf, sendcounts, sdispls, sendtype.handle(), recvbuf, recvcounts, rdispls,
                  recvtype.handle(), handle_);
  }
  virtual void Alltoallw(const void* sendbuf, const int sendcounts[], const int sdispls[],
                         const Datatype sendtypes[], void* recvbuf, const int recvcounts[],
                         const int rdispls[], const Datatype recvtypes[]) const;
  virtual void Reduce(const void* sendbuf, void* recvbuf, int count, const Datatype& type,
                      const Op& op, int root) const {
    MPI_Reduce(sendbuf, recvbuf, count, type.handle(), op.handle(), root, handle_);
  }
  virtual void Allreduce(const void* sendbuf, void* recvbuf, int count, const Datatype& type,
                         const Op& op) const {
    MPI_Allreduce(sendbuf, recvbuf, count, type.handle(), op.handle(), handle_);
  }
  virtual void Reduce_scatter(const void* sendbuf, void* recvbuf, int recvcounts[],
                              const Datatype& type, const Op& op) const {
    MPI_Reduce_scatter(sendbuf, recvbuf, recvcounts, type.handle(), op.handle(), handle_);
  }
  virtual void Disconnect() { MPI_Comm_disconnect(&handle_); }
  virtual void Get_name(char* name, int& length) const {
    MPI_Comm_get_name(handle_, name, &length);
  }
  virtual void Set_name(const char* name) { MPI_Comm_set_name(handle_, name); }
  virtual int Get_topology() const { return Number(MPI_Topo_test); }
  virtual void Abort(int errorcode) { MPI_Abort(handle_, errorcode); }
  static Errhandler Create_errhandler(Errhandler_function* function);
  virtual void Set_errhandler(const Errhandler& errhandler) {
    MPI_Comm_set_errhandler(handle_, errhandler.handle());
  }
  virtual Errhandler Get_errhandler() const {
    MPI_Errhandler errhandler = MPI_ERRHANDLER_NULL;
    MPI_Comm_get_errhandler(handle_, &errhandler);
    return Errhandler(errhandler);
  }
  virtual void Set_attr(int keyval, const void* value) const {
    MPI_Comm_set_attr(handle_, keyval, const_cast<void*>(value));
  }
  virtual bool Get_attr(int keyval, void* value) const {
    int flag = 0;
    MPI_Comm_get_attr(handle_, keyval, value, &flag);
    return flag != 0;
  }
  virtual void Delete_attr(int keyval) { MPI_Comm_delete_attr(handle_, keyval); }

 protected:
  static int do_create_keyval(MPI_Comm_copy_attr_function* c_copy,
                              MPI_Comm_delete_attr_function* c_delete, Copy_attr_function* copy,
                              Delete_attr_function* remove, void* extra_state, int& keyval);

  MPI_Comm Duplicate() const {
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Comm_dup(handle_, &made);
    return made;
  }
  template <typename Made>
  Made SplitOf(int color, int key) const {
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Comm_split(handle_, color, key, &made);
    return Made(made);
  }
  template <typename Made>
  Made CreateOf(const Group& group) const {
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Comm_create(handle_, group.handle(), &made);
    return Made(made);
  }

 private:
  int Number(int (*get)(MPI_Comm, int*)) const {
    int number = 0;
    get(handle_, &number);
    return number;
  }
  bool Probed(int source, int tag, MPI_Status* status) const {
    int flag = 0;
    MPI_Iprobe(source, tag, handle_, &flag, status);
    return flag != 0;
  }
};

class Intracomm : public Comm {
  FERRY_DERIVED(Intracomm, Comm, MPI_Comm)
  virtual void Scan(const void* sendbuf, void* recvbuf, int count, const Datatype& type,
                    const Op& op) const {
    MPI_Scan(sendbuf, recvbuf, count, type.handle(), op.handle(), handle_);
  }
  virtual void Exscan(const void* sendbuf, void* recvbuf, int count, const Datatype& type,
                      const Op& op) const {
    MPI_Exscan(sendbuf, recvbuf, count, type.handle(), op.handle(), handle_);
  }
  Intracomm& Clone() const override { return *new Intracomm(Duplicate()); }
  virtual Intracomm Create(const Group& group) const { return CreateOf<Intracomm>(group); }
  virtual Intracomm Split(int color, int key) const { return SplitOf<Intracomm>(color, key); }
  virtual Intercomm Create_intercomm(int local_leader, const Comm& peer_comm, int remote_leader,
                                     int tag) const;
  virtual Cartcomm Create_cart(int ndims, const int dims[], const bool periods[],
                               bool reorder) const;
  virtual Graphcomm Create_graph(int nnodes, const int index[], const int edges[],
                                 bool reorder) const;
  virtual Intercomm Accept(const char* port_name, const Info& info, int root) const;
  virtual Intercomm Connect(const char* port_name, const Info& info, int root) const;
  virtual Intercomm Spawn(const char* command, const char* argv[], int maxprocs, const Info& info,
                          int root) const;
  virtual Intercomm Spawn(const char* command, const char* argv[], int maxprocs, const Info& info,
                          int root, int errcodes[]) const;
  virtual Intercomm Spawn_multiple(int count, const char* commands[], const char** argv[],
                                   const int maxprocs[], const Info infos[], int root);
  virtual Intercomm Spawn_multiple(int count, const char* commands[], const char** argv[],
                                   const int maxprocs[], const Info infos[], int root,
                                   int errcodes[]);
};

class Intercomm : public Comm {
  FERRY_DERIVED(Intercomm, Comm, MPI_Comm)
  Intercomm& Clone() const override { return *new Intercomm(Duplicate()); }
  virtual int Get_remote_size() const {
    int size = 0;
    MPI_Comm_remote_size(handle_, &size);
    return size;
  }
  virtual Group Get_remote_group() const {
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm_remote_group(handle_, &group);
    return Group(group);
  }
  virtual Intracomm Merge(bool high) const {
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Intercomm_merge(handle_, high ? 1 : 0, &made);
    return Intracomm(made);
  }
  virtual Intercomm Create(const Group& group) const { return CreateOf<Intercomm>(group); }
  virtual Intercomm Split(int color, int key) const { return SplitOf<Intercomm>(color, key); }
};

class Cartcomm : public Intracomm {
  FERRY_DERIVED(Cartcomm, Intracomm, MPI_Comm)
  Cartcomm& Clone() const override { return *new Cartcomm(Duplicate()); }
  virtual int Get_dim() const {
    int number = 0;
    MPI_Cartdim_get(handle_, &number);
    return number;
  }
  virtual void Get_topo(int maxdims, int dims[], bool periods[], int coords[]) const {
    const ferry::bindings::Truths truths(maxdims);
    MPI_Cart_get(handle_, maxdims, dims, truths.get(), coords);
    truths.Give(maxdims, periods);
  }
  virtual int Get_cart_rank(const int coords[]) const {
    int rank = 0;
    MPI_Cart_rank(handle_, coords, &rank);
    return rank;
  }
  virtual void Get_coords(int rank, int maxdims, int coords[]) const {
    MPI_Cart_coords(handle_, rank, maxdims, coords);
  }
  virtual void Shift(int direction, int disp, int& source, int& dest) const {
    MPI_Cart_shift(handle_, direction, disp, &source, &dest);
  }
  virtual Cartcomm Sub(const bool remain_dims[]) const {
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Cart_sub(handle_, ferry::bindings::Truths(Get_dim(), remain_dims).get(), &made);
    return Cartcomm(made);
  }
  virtual int Map(int ndims, const int dims[], const bool periods[]) const {
    int rank = 0;
    MPI_Cart_map(handle_, ndims, dims, ferry::bindings::Truths(ndims, periods).get(), &rank);
    return rank;
  }
};

class Graphcomm : public Intracomm {
  FERRY_DERIVED(Graphcomm, Intracomm, MPI_Comm)
  Graphcomm& Clone() const override { return *new Graphcomm(Duplicate()); }
  virtual void Get_dims(int nnodes[], int nedges[]) const {
    MPI_Graphdims_get(handle_, nnodes, nedges);
  }
  virtual void Get_topo(int maxindex, int maxedges, int index[], int edges[]) const {
    MPI_Graph_get(handle_, maxindex, maxedges, index, edges);
  }
  virtual int Get_neighbors_count(int rank) const {
    int number = 0;
    MPI_Graph_neighbors_count(handle_, rank, &number);
    return number;
  }
  virtual void Get_neighbors(int rank, int maxneighbors, int neighbors[]) const {
    MPI_Graph_neighbors(handle_, rank, maxneighbors, neighbors);
  }
  virtual int Map(int nnodes, const int index[], const int edges[]) const {
    int rank = 0;
    MPI_Graph_map(handle_, nnodes, index, edges, &rank);
    return rank;
  }
};

// ---- Windows and files --------------------------------------------------------------------------

class Win {
  FERRY_CLASS(Win, MPI_Win, MPI_WIN_NULL)
  using Copy_attr_function = int(const Win&, int, void*, void*, void*, bool&);
  using Delete_attr_function = int(Win&, int, void*, void*);
  using Errhandler_function = void(Win&, int*, ...);

  static Errhandler Create_errhandler(Errhandler_function* function);
  virtual void Set_errhandler(const Errhandler& errhandler) const {
    MPI_Win_set_errhandler(handle_, errhandler.handle());
  }
  virtual Errhandler Get_errhandler() const {
    MPI_Errhandler errhandler = MPI_ERRHANDLER_NULL;
    MPI_Win_get_errhandler(handle_, &errhandler);
    return Errhandler(errhandler);
  }
  virtual void Accumulate(const void* origin, int origin_count, const Datatype& origin_type,
                          int target, Aint disp, int target_count, const Datatype& target_type,
                          const Op& op) const {
    MPI_Accumulate(origin, origin_count, origin_type.handle(), target, disp, target_count,
                   target_type.handle(), op.handle(), handle_);
  }
  virtual void Complete() const { MPI_Win_complete(handle_); }
  virtual void Fence(int assert) const { MPI_Win_fence(assert, handle_); }
  virtual void Free();
  virtual void Get(const void* origin, int origin_count, const Datatype& origin_type, int target,
                   Aint disp, int target_count, const Datatype& target_type) const {
    MPI_Get(const_cast<void*>(origin), origin_count, origin_type.handle(), target, disp,
            target_count, target_type.handle(), handle_);
  }
  virtual Group Get_group() const {
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Win_get_group(handle_, &group);
    return Group(group);
  }
  virtual void Lock(int lock_type, int rank, int assert) const {
    MPI_Win_lock(lock_type, rank, assert, handle_);
  }
  virtual void Post(const Group& group, int assert) const {
    MPI_Win_post(group.handle(), assert, handle_);
  }
  virtual void Put(const void* origin, int origin_count, const Datatype& origin_type, int target,
                   Aint disp, int target_count, const Datatype& target_type) const {
    MPI_Put(origin, origin_count, origin_type.handle(), target, disp, target_count,
            target_type.handle(), handle_);
  }
  virtual void Start(const Group& group, int assert) const {
    MPI_Win_start(group.handle(), assert, handle_);
  }
  virtual bool Test() const {
    int flag = 0;
    MPI_Win_test(handle_, &flag);
    return flag != 0;
  }
  virtual void Unlock(int rank) const { MPI_Win_unlock(rank, handle_); }
  virtual void Wait() const { MPI_Win_wait(handle_); }
  virtual void Call_errhandler(int errorcode) const { MPI_Win_call_errhandler(handle_, errorcode); }
  virtual void Delete_attr(int keyval) { MPI_Win_delete_attr(handle_, keyval); }
  virtual void Get_name(char* name, int& length) const { MPI_Win_get_name(handle_, name, &length); }
  virtual void Set_attr(int keyval, const void* value) {
    MPI_Win_set_attr(handle_, keyval, const_cast<void*>(value));
  }
  virtual void Set_name(const char* name) { MPI_Win_set_name(handle_, name); }

 protected:
  static int do_create_keyval(MPI_Win_copy_attr_function* c_copy,
                              MPI_Win_delete_attr_function* c_delete, Copy_attr_function* copy,
                              Delete_attr_function* remove, void* extra_state, int& keyval);
};

class File {
  FERRY_CLASS(File, MPI_File, MPI_FILE_NULL)
  using Errhandler_function = void(File&, int*, ...);

  void Close();
  static Errhandler Create_errhandler(Errhandler_function* function);
};

}  // namespace MPI
// NOLINTEND(readability-identifier-naming)
