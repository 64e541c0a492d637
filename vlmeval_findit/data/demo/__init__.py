"""The dataset Demo, of photographs that other packages ship."""
