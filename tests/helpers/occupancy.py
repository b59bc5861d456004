"""How many warps are resident on an SM, as the CUDA occupancy calculator counts them: what figures are held to."""

from convlint.gpus.gpu import Gpu


def occupancy_warps(
    gpu: Gpu, *, threads_per_block: int, registers_per_thread: int, shared_bytes_per_block: int = 0
) -> int:
    """Resident warps per SM of a kernel on `gpu`; 0 if it cannot be launched (KG 1.4.1, CUDA guide).

    From 8.0 on, each block's shared memory takes 1 KiB more than it asks for.
    """
    ampere_on = gpu.compute_capability >= "8.0"
    if registers_per_thread > gpu.max_registers_per_thread or shared_bytes_per_block > gpu.max_shared_bytes_per_block:
        return 0
    return resident_warps(
        threads_per_block=threads_per_block,
        registers_per_thread=registers_per_thread,
        shared_bytes_per_block=shared_bytes_per_block + (1024 if ampere_on else 0),
        registers_per_sm=gpu.registers_per_sm,
        registers_per_block=gpu.registers_per_block or gpu.registers_per_sm,
        shared_bytes_per_sm=gpu.shared_bytes_per_sm,
        max_warps_per_sm=gpu.max_warps_per_sm,
        max_blocks_per_sm=gpu.max_blocks_per_sm,
        warp_unit=2 if gpu.compute_capability == "6.0" else 4,
        shared_unit=128 if ampere_on else 256,
    )


def resident_warps(
    *,
    threads_per_block: int,
    registers_per_thread: int,
    shared_bytes_per_block: int,
    registers_per_sm: int,
    registers_per_block: int,
    shared_bytes_per_sm: int,
    max_warps_per_sm: int,
    max_blocks_per_sm: int,
    register_unit: int = 256,
    warp_unit: int = 4,
    shared_unit: int = 256,
) -> int:
    """Warps per SM under given limits, as the CUDA occupancy calculator counts them; 0 if one block does not fit.

    Registers are allotted per warp in multiples of `register_unit`, to warps in multiples of `warp_unit`
    (64 and 2 on Fermi); shared memory per block in multiples of `shared_unit` bytes.
    """
    if threads_per_block < 1 or threads_per_block > 1024:
        return 0
    warps = -(-threads_per_block // 32)
    blocks = min(max_blocks_per_sm, max_warps_per_sm // warps)
    if registers_per_thread > 0:
        per_warp = -(-registers_per_thread * 32 // register_unit) * register_unit
        allotted = -(-warps // warp_unit) * warp_unit
        if allotted * per_warp > registers_per_block:
            return 0
        blocks = min(blocks, registers_per_sm // per_warp // warp_unit * warp_unit // allotted)
    if shared_bytes_per_block > 0:
        blocks = min(blocks, shared_bytes_per_sm // (-(-shared_bytes_per_block // shared_unit) * shared_unit))
    return blocks * warps
