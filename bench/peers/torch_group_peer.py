"""PyTorch in a group of processes, each of which trains on its share of every batch: DistributedDataParallel over Gloo
("ddp"), or Horovod's optimizer over Gloo ("horovod"). RANK and WORLD_SIZE say which process this is; the group meets at
MASTER_ADDR and MASTER_PORT. In each round every process trains one epoch."""
import os
import sys

import peer
import torch
import torch_peer

case, way, _ = peer.arguments()
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def join_gloo():
    from torch import distributed
    from torch.nn.parallel import DistributedDataParallel
    distributed.init_process_group("gloo")
    torch_peer.model = DistributedDataParallel(torch_peer.model, gradient_as_bucket_view=True)


def join_horovod():
    import horovod.torch as horovod
    horovod.init()
    if horovod.size() != size:
        sys.exit(f"Horovod sees {horovod.size()} processes of {size}")
    horovod.broadcast_parameters(torch_peer.model.state_dict(), root_rank=0)
    torch_peer.optimizer = horovod.DistributedOptimizer(torch_peer.optimizer,
                                                        named_parameters=torch_peer.model.named_parameters())


def share(batches):
    """This process's rows."""
    x, y = torch_peer.data(batches)
    layout = torch.channels_last if torch_peer.IMAGES else torch.contiguous_format
    return x[rank::size].contiguous(memory_format=layout), y[rank::size].contiguous()


def first_step():
    torch_peer.train(*share(1))


def make_epoch():
    x, y = share(case.steps)

    def epoch():
        for rows in torch.randperm(len(x)).split(case.batch // size):
            torch_peer.train(x[rows], y[rows])

    return epoch


join_horovod() if way == "horovod" else join_gloo()
peer.serve_epochs(case, torch_peer.parameters, first_step, make_epoch)
