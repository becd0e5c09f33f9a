import { Component, type ReactNode } from "react";

export interface BoundaryProps {
  fallback: ReactNode;
  /** Told once that something broke. */
  onBroken?: () => void;
  children: ReactNode;
}

/** Shows `fallback` where something below it broke while being drawn. A new `key` tries again. */
export class Boundary extends Component<BoundaryProps, { broken: boolean }> {
  override state = { broken: false };

  static getDerivedStateFromError(): { broken: boolean } {
    return { broken: true };
  }

  override componentDidCatch(): void {
    this.props.onBroken?.();
  }

  override render(): ReactNode {
    return this.state.broken ? this.props.fallback : this.props.children;
  }
}
