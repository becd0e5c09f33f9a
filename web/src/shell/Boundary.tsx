import { Component, type ReactNode } from "react";

export interface BoundaryProps {
  fallback: ReactNode;
  /** Called once if a component below crashes. */
  onBroken?: () => void;
  children: ReactNode;
}

/** Shows `fallback` if a component below it crashes while rendering. A new `key` tries again. */
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
