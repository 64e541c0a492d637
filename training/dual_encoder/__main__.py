"""``python -m training.dual_encoder`` trains it."""

from training.dual_encoder.train import main

if __name__ == "__main__":
    main()
