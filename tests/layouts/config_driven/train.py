import argparse

import torch
from build import build


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="model.yaml")
    args = parser.parse_args()
    model = build(args.model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(10):
        loss = model(torch.rand(8, 3, 64, 64)).mean()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
